//! The attributes of the StableHLO and CHLO dialects.

use std::sync::Arc;

use warpforge_ir::attr::{
    Attribute, ChannelHandle, ConvDims, DotAlgorithm, DotDims, EnumDialect, EnumValue, IndexDims,
    OutputOperandAlias, RaggedDotDims, ResultAccuracy, ResultAccuracyMode,
};

use super::cursor::{Cursor, Parse};
use super::parser::Parser;

impl Parser<'_> {
    /// The attribute after `#name`, when it is one that is understood; the position is then behind it.
    pub(super) fn stablehlo_attribute(&mut self, name: &str) -> Parse<Option<Attribute>> {
        let (dialect, mnemonic) = name.split_once('.').unwrap_or((name, ""));
        let owner = match dialect {
            "stablehlo" => EnumDialect::StableHlo,
            "chlo" => EnumDialect::Chlo,
            _ => return Ok(None),
        };
        if mnemonic.is_empty() || EnumValue::is_mnemonic(mnemonic) {
            return self.enumeration(owner, mnemonic).map(Some);
        }
        Ok(Some(match mnemonic {
            "dot" => Attribute::Dot(Arc::new(self.dot_dims()?)),
            "ragged_dot" => Attribute::RaggedDot(Arc::new(self.ragged_dot_dims()?)),
            "gather" => Attribute::Gather(Arc::new(self.index_dims()?)),
            "scatter" => Attribute::Scatter(Arc::new(self.index_dims()?)),
            "conv" => {
                self.cur.expect("<")?;
                let dims = if self.cur.looking_at("raw") { self.raw_conv_dims()? } else { self.conv_dims()? };
                self.cur.expect(">")?;
                Attribute::Conv(Arc::new(dims))
            }
            "dot_algorithm" => Attribute::DotAlgorithm(Arc::new(self.dot_algorithm()?)),
            "output_operand_alias" => Attribute::Alias(Arc::new(self.alias()?)),
            "channel_handle" => Attribute::Channel(self.channel()?),
            "result_accuracy" => Attribute::ResultAccuracy(Arc::new(self.result_accuracy()?)),
            "bounds" => Attribute::Bounds(self.cur.list("<", ">", bound)?.into()),
            "type_extensions" => {
                self.cur.expect("<")?;
                self.cur.expect("bounds")?;
                self.cur.expect("=")?;
                let bounds = self.cur.list("[", "]", bound)?;
                self.cur.expect(">")?;
                Attribute::Bounds(bounds.into())
            }
            "replica_group_mesh_axes" => Attribute::MeshAxes(Arc::new(self.mesh_axes()?)),
            // Only parts of the attribute above; on their own they are kept as text.
            "axis_ref" | "mesh" | "mesh_axis" | "sub_axis_info" => return Ok(None),
            _ => return Err(self.cur.error_here(format!("unknown attribute `#{name}`"))),
        }))
    }

    /// `<name VALUE>`, or `<VALUE>` when the name came before.
    fn enumeration(&mut self, dialect: EnumDialect, mnemonic: &str) -> Parse<Attribute> {
        self.cur.expect("<")?;
        let start = self.cur.pos();
        let mnemonic = if mnemonic.is_empty() {
            self.cur.word().ok_or_else(|| self.cur.expected("the name of an enumeration"))?
        } else {
            mnemonic
        };
        let value = self.cur.word().ok_or_else(|| self.cur.expected("a value"))?;
        let parsed = EnumValue::parse(mnemonic, value);
        let parsed =
            parsed.ok_or_else(|| self.cur.error_at(start, format!("`{value}` is no value of {mnemonic}")))?;
        self.cur.expect(">")?;
        Ok(Attribute::Enum(dialect, parsed))
    }

    /// `<name = value, …>`: each field goes to `field`, which says whether it knows the name.
    pub(super) fn fields(&mut self, mut field: impl FnMut(&mut Self, &str) -> Parse<bool>) -> Parse<()> {
        self.cur.expect("<")?;
        if self.cur.eat(">") {
            return Ok(());
        }
        let mut seen: Vec<&str> = Vec::new();
        loop {
            self.cur.skip();
            let start = self.cur.pos();
            let name = self.cur.word().ok_or_else(|| self.cur.expected("the name of a field"))?;
            if seen.contains(&name) {
                return Err(self.cur.error_at(start, format!("the field `{name}` is given twice")));
            }
            seen.push(name);
            self.cur.expect("=")?;
            if !field(self, name)? {
                return Err(self.cur.error_at(start, format!("unknown field `{name}`")));
            }
            let separated = self.cur.eat(",");
            // A comma may follow the last field.
            if self.cur.eat(">") {
                return Ok(());
            }
            if !separated {
                return Err(self.cur.expected("`,`"));
            }
        }
    }

    fn dot_field(&mut self, dims: &mut DotDims, name: &str) -> Parse<bool> {
        let list = match name {
            "lhs_batching_dimensions" => &mut dims.lhs_batching,
            "rhs_batching_dimensions" => &mut dims.rhs_batching,
            "lhs_contracting_dimensions" => &mut dims.lhs_contracting,
            "rhs_contracting_dimensions" => &mut dims.rhs_contracting,
            _ => return Ok(false),
        };
        *list = self.cur.i64_list()?;
        Ok(true)
    }

    fn dot_dims(&mut self) -> Parse<DotDims> {
        let mut dims = DotDims::default();
        self.fields(|parser, name| parser.dot_field(&mut dims, name))?;
        Ok(dims)
    }

    fn ragged_dot_dims(&mut self) -> Parse<RaggedDotDims> {
        let mut dims = RaggedDotDims::default();
        self.fields(|parser, name| {
            match name {
                "lhs_ragged_dimensions" => dims.lhs_ragged = parser.cur.i64_list()?,
                "rhs_group_dimensions" => dims.rhs_group = parser.cur.i64_list()?,
                _ => return parser.dot_field(&mut dims.dot, name),
            }
            Ok(true)
        })?;
        Ok(dims)
    }

    /// The dimension numbers of `gather` or `scatter`.
    fn index_dims<D: IndexDims>(&mut self) -> Parse<D> {
        let mut dims = D::default();
        let (mut lists, index_vector_dim) = dims.parts_mut();
        self.fields(|parser, name| {
            match D::NAMES.iter().position(|known| *known == name) {
                Some(at) => *lists[at] = parser.cur.i64_list()?,
                None if name == "index_vector_dim" => *index_vector_dim = parser.cur.i64()?,
                None => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(dims)
    }

    /// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
    pub(super) fn conv_dims(&mut self) -> Parse<ConvDims> {
        let (input_batch, input_feature, input_spatial) = self.conv_group(b'b', b'f')?;
        self.cur.expect("x")?;
        let (kernel_input_feature, kernel_output_feature, kernel_spatial) = self.conv_group(b'i', b'o')?;
        self.cur.expect("->")?;
        let (output_batch, output_feature, output_spatial) = self.conv_group(b'b', b'f')?;
        Ok(ConvDims {
            input_batch,
            input_feature,
            input_spatial,
            kernel_input_feature,
            kernel_output_feature,
            kernel_spatial,
            output_batch,
            output_feature,
            output_spatial,
        })
    }

    fn conv_group(&mut self, first: u8, second: u8) -> Parse<(i64, i64, Vec<i64>)> {
        self.cur.skip();
        let start = self.cur.pos();
        let items = self.cur.list("[", "]", |cur| {
            cur.skip();
            Ok((cur.pos(), cur.take_while(|b| b.is_ascii_alphanumeric() || b == b'?')))
        })?;
        let (mut letters, mut spatial) = ([None, None], Vec::new());
        for (position, (at, item)) in items.iter().enumerate() {
            let position = position as i64;
            let slot = match item.as_bytes() {
                [letter] if *letter == first => 0,
                [letter] if *letter == second => 1,
                b"?" => continue,
                _ => {
                    let number: usize = item
                        .parse()
                        .map_err(|_| self.cur.error_at(*at, format!("`{item}` is no dimension")))?;
                    if number >= items.len() {
                        return Err(self
                            .cur
                            .error_at(*at, format!("there is no spatial dimension {number}")));
                    }
                    if spatial.len() <= number {
                        spatial.resize(number + 1, None);
                    }
                    if spatial[number].replace(position).is_some() {
                        return Err(self.cur.error_at(*at, format!("the dimension {number} is given twice")));
                    }
                    continue;
                }
            };
            if letters[slot].replace(position).is_some() {
                return Err(self.cur.error_at(*at, format!("`{item}` is given twice")));
            }
        }
        let spatial: Option<Vec<i64>> = spatial.into_iter().collect();
        match (letters, spatial) {
            ([Some(a), Some(b)], Some(spatial)) => Ok((a, b, spatial)),
            _ => Err(self.cur.error_at(start, "a dimension is missing")),
        }
    }

    /// `raw input_batch_dimension = 0, …`.
    fn raw_conv_dims(&mut self) -> Parse<ConvDims> {
        self.cur.expect("raw")?;
        let mut dims = ConvDims::default();
        loop {
            let start = self.cur.pos();
            let name = self.cur.word().ok_or_else(|| self.cur.expected("the name of a field"))?;
            self.cur.expect("=")?;
            match name {
                "input_batch_dimension" => dims.input_batch = self.cur.i64()?,
                "input_feature_dimension" => dims.input_feature = self.cur.i64()?,
                "input_spatial_dimensions" => dims.input_spatial = self.cur.i64_list()?,
                "kernel_input_feature_dimension" => dims.kernel_input_feature = self.cur.i64()?,
                "kernel_output_feature_dimension" => dims.kernel_output_feature = self.cur.i64()?,
                "kernel_spatial_dimensions" => dims.kernel_spatial = self.cur.i64_list()?,
                "output_batch_dimension" => dims.output_batch = self.cur.i64()?,
                "output_feature_dimension" => dims.output_feature = self.cur.i64()?,
                "output_spatial_dimensions" => dims.output_spatial = self.cur.i64_list()?,
                _ => return Err(self.cur.error_at(start, format!("unknown field `{name}`"))),
            }
            if !self.cur.eat(",") || self.cur.looking_at(">") {
                return Ok(dims);
            }
        }
    }

    /// `<lhs_precision_type = f32, …>`.
    pub(super) fn dot_algorithm(&mut self) -> Parse<DotAlgorithm> {
        let none = warpforge_ir::Type::None;
        let mut algorithm = DotAlgorithm {
            lhs_precision_type: none.clone(),
            rhs_precision_type: none.clone(),
            accumulation_type: none,
            lhs_component_count: 1,
            rhs_component_count: 1,
            num_primitive_operations: 1,
            allow_imprecise_accumulation: false,
        };
        self.fields(|parser, name| {
            match name {
                "lhs_precision_type" => algorithm.lhs_precision_type = parser.ty()?,
                "rhs_precision_type" => algorithm.rhs_precision_type = parser.ty()?,
                "accumulation_type" => algorithm.accumulation_type = parser.ty()?,
                "lhs_component_count" => algorithm.lhs_component_count = parser.cur.i64()?,
                "rhs_component_count" => algorithm.rhs_component_count = parser.cur.i64()?,
                "num_primitive_operations" => algorithm.num_primitive_operations = parser.cur.i64()?,
                "allow_imprecise_accumulation" => {
                    algorithm.allow_imprecise_accumulation = parser.truth()?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(algorithm)
    }

    /// `true` or `false`.
    pub(super) fn truth(&mut self) -> Parse<bool> {
        if self.cur.eat("true") {
            Ok(true)
        } else if self.cur.eat("false") {
            Ok(false)
        } else {
            Err(self.cur.expected("`true` or `false`"))
        }
    }

    fn alias(&mut self) -> Parse<OutputOperandAlias> {
        let mut alias = OutputOperandAlias::default();
        self.fields(|parser, name| {
            match name {
                "output_tuple_indices" => alias.output_tuple_indices = parser.cur.i64_list()?,
                "operand_index" => alias.operand_index = parser.cur.i64()?,
                "operand_tuple_indices" => alias.operand_tuple_indices = parser.cur.i64_list()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(alias)
    }

    fn channel(&mut self) -> Parse<ChannelHandle> {
        let mut channel = ChannelHandle::default();
        self.fields(|parser, name| {
            match name {
                "handle" => channel.handle = parser.cur.i64()?,
                "type" => channel.kind = parser.cur.i64()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(channel)
    }

    fn result_accuracy(&mut self) -> Parse<ResultAccuracy> {
        let mut accuracy = ResultAccuracy::default();
        self.fields(|parser, name| {
            match name {
                "atol" => accuracy.atol = parser.float_literal()?,
                "rtol" => accuracy.rtol = parser.float_literal()?,
                "ulps" => accuracy.ulps = parser.cur.i64()?,
                "mode" => {
                    let start = parser.cur.pos();
                    let mode = parser.attribute()?.as_enum::<ResultAccuracyMode>();
                    accuracy.mode = mode.ok_or_else(|| parser.cur.error_at(start, "expected a mode"))?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(accuracy)
    }
}

fn bound(cur: &mut Cursor<'_>) -> Parse<Option<u64>> {
    if cur.eat("?") { Ok(None) } else { cur.digits().map(Some) }
}
