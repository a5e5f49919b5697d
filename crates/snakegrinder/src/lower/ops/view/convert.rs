//! Copies and changes of the element type.

use super::super::prelude::*;
use crate::lower::strides::is_contiguous;
use crate::lower::value::value_type;

pub(super) const TABLE: &[Op] = &[
    op("aten.clone.default", |_, args| {
        args.ignore(&["memory_format"]);
        one(args.tensor("self")?)
    }),
    view("aten.contiguous.default", contiguous),
    op("aten.copy.default", copy),
    view("aten.cpu.default", |_, args| one(args.tensor("self")?)),
    op("aten._to_copy.default", |cx, args| to(cx, args, args.opt_dtype("dtype")?)),
    view("aten.to.device", |cx, args| to(cx, args, args.opt_dtype("dtype")?)).also(&[
        "aten.to.dtype",
        "aten.to.dtype_layout",
        "aten.to.prim_Device",
        "aten.to.prim_dtype",
    ]),
    view("aten.to.other", |cx, args| {
        let other = args.tensor("other")?;
        to(cx, args, Some(other.dtype))
    })
    .also(&["aten.type_as.default"]),
    op("prims.convert_element_type.default", |cx, args| {
        let x = args.tensor("a")?;
        match args.opt_dtype("dtype")? {
            Some(dtype) => one(cx.convert(&x, dtype)?),
            None => refuse("no element type to convert to"),
        }
    }),
    view("aten.view.dtype", view_as_dtype),
];

fn to(cx: &mut Cx<'_>, args: &Args<'_>, dtype: Option<ElementType>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    args.placement()?;
    let copy = args.bool_or("copy", false)?;
    let converted = cx.convert(&x, dtype.unwrap_or(x.dtype))?;
    // Without a change of type the result is the argument itself.
    one(if copy || converted.dtype != x.dtype { converted.fresh() } else { converted })
}

fn contiguous(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let plain = match args.get("memory_format") {
        None | Some(Value::MemoryFormat(1 | 4)) => true,
        Some(_) => false,
    };
    let layout = args.meta("self").and_then(|meta| cx.recorded_layout(meta));
    let shares = plain && layout.is_some_and(|(sizes, strides)| is_contiguous(&sizes, &strides));
    one(if shares { x } else { x.fresh() })
}

/// The elements of another tensor, in this one's shape and type.
fn copy(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, source) = (args.tensor("self")?, args.tensor("src")?);
    args.placement()?;
    let source = cx.convert(&source, x.dtype)?;
    one(cx.expand_to(&source, &x.dims)?)
}

/// The same bytes as another element type.
fn view_as_dtype(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let Some(dtype) = args.opt_dtype("dtype")? else { return refuse("no element type to view as") };
    if dtype == x.dtype {
        return one(x);
    }
    if dtype.byte_width() != x.dtype.byte_width() || [dtype, x.dtype].contains(&ElementType::Bool) {
        return refuse(format!("a view of {} as {dtype}", x.dtype));
    }
    let id = cx.b.op_as(OpKind::BitcastConvert, &[x.id], [], value_type(dtype, &x.dims))?;
    let value = cx.tensor(id, dtype, x.dims.clone());
    one(cx.frozen_view(&x, &value))
}
