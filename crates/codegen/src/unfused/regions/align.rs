//! RoIAlign and the gradient of the features.
//!
//! Forward, a thread computes one bin of a channel. Backward, a thread has the gradient of one bin and adds it to the elements
//! that the bin was interpolated from; regions overlap, so these are atomic sums in unspecified order.

use warpforge_ir::calls::RoiAlign;
use warpforge_tensor::{ElementType, Scalar};

use crate::kernel::{Emitted, Unsupported};
use crate::types::literal;
use crate::unfused::element_kernel::{ElementKernel, UnfusedKernel};

pub(super) fn forward(kernel: &UnfusedKernel<'_>, align: RoiAlign) -> Result<Emitted, Unsupported> {
    let target = kernel.output();
    let (features, bins) = (kernel.dims(0)?, &kernel.request.graph.node(target).dims);
    let ty = kernel.full_float()?;
    let mut element = ElementKernel::new(kernel.request, target);
    let from = kernel.read(&mut element.builder, 0)?;
    open_region(kernel, &mut element, align, features, bins)?;
    let text = &mut element.builder.text;
    text.line(format!("{ty} value = 0;"));
    text.open("if (region.image >= 0)");
    text.line(format!("const {ty}* const plane = {from} + {};", plane(element.index, features)));
    text.open(format!("region.each(i2, i3, [&]({})", sample(ty)));
    text.line(format!("const {ty} above_part = 1 - below_part, before_part = 1 - after_part;"));
    let width = features[3];
    let term =
        |row: &str, column: &str| format!("{row}_part * {column}_part * plane[{row} * {width} + {column}]");
    text.line(format!(
        "value += {} + {} + {} + {};",
        term("above", "before"),
        term("above", "after"),
        term("below", "before"),
        term("below", "after")
    ));
    text.close();
    text.line(");");
    text.line("value /= region.samples();");
    text.close();
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}

pub(super) fn backward(kernel: &UnfusedKernel<'_>, align: RoiAlign) -> Result<Emitted, Unsupported> {
    let (target, gradient) = (kernel.output(), kernel.operand(0)?);
    let (features, bins) = (&kernel.request.graph.node(target).dims, kernel.dims(0)?);
    let ty = kernel.full_float()?;
    let cleared = ElementKernel::new(kernel.request, target).finish(&format!("({ty})0"))?;
    if kernel.request.graph.node(gradient).is_empty() {
        return Ok(Emitted { kernels: vec![cleared], scratch: Vec::new() });
    }
    let mut element = ElementKernel::with_dims(kernel.request, gradient, bins.to_vec());
    let from = kernel.read(&mut element.builder, 0)?;
    let to = element.builder.write(target)?;
    open_region(kernel, &mut element, align, features, bins)?;
    let index = element.index;
    let text = &mut element.builder.text;
    text.line(format!("const {ty} given = {from}[n];"));
    text.open("if (region.image >= 0 && given != 0)");
    text.line(format!("{ty}* const plane = {to} + {};", plane(index, features)));
    text.line(format!("const {ty} samples = region.samples();"));
    text.open(format!("region.each(i2, i3, [&]({})", sample(ty)));
    text.line(format!("const {ty} above_part = 1 - below_part, before_part = 1 - after_part;"));
    for row in ["above", "below"] {
        for column in ["before", "after"] {
            let place = format!("{row} * {} + {column}", features[3]);
            text.line(format!("wf_add_at(plane + {place}, given * ({row}_part * {column}_part) / samples);"));
        }
    }
    text.close();
    text.line(");");
    text.close();
    let mut added = element.done()?;
    let values = [gradient, target].map(|id| kernel.request.graph.node(id).bytes() as u64);
    added.bytes = values[0] + 2 * values[1];
    Ok(Emitted { kernels: vec![cleared, added], scratch: Vec::new() })
}

/// Emits the region whose bin a thread has; dimensions of bins are region, channel, row and column.
fn open_region(
    kernel: &UnfusedKernel<'_>,
    element: &mut ElementKernel<'_>,
    align: RoiAlign,
    features: &[usize],
    bins: &[usize],
) -> Result<(), Unsupported> {
    let (&[images, _, height, width], &[_, _, rows, columns]) = (features, bins) else {
        return Err(kernel.unsupported());
    };
    let regions = kernel.read(&mut element.builder, 1)?;
    let scale = literal(ElementType::F64, Scalar::Float(align.spatial_scale))?;
    let (aligned, ratio) = (align.aligned, align.sampling_ratio.unwrap_or(0));
    let ty = kernel.full_float()?;
    element.builder.text.line(format!(
        "const wf_region<{ty}> region({regions} + i0 * 5, {images}, {scale}, {aligned}, {rows}, {columns}, {ratio}, {height}, \
         {width});"
    ));
    Ok(())
}

/// Where the plane of the region's image and the thread's channel begins.
fn plane(index: &str, features: &[usize]) -> String {
    let [channels, plane] = [features[1], features[2] * features[3]];
    format!("(({index})region.image * {channels} + i1) * {plane}")
}

/// The parameters that a sample is used with.
fn sample(ty: &str) -> String {
    format!("int above, int below, {ty} below_part, int before, int after, {ty} after_part")
}
