//! The convolutions of ResNet-50 as Keras has it: the stride of a stage is in its first 1x1 convolutions.

/// A convolution with the bias that batch normalization is folded into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conv {
    /// The name of its layer.
    pub(super) name: String,
    /// The name of the layer of its batch normalization.
    pub(super) norm: String,
    pub(super) kernel: usize,
    pub(super) stride: usize,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

impl Conv {
    /// Zeros around the image: as many as keep its size where there is no stride.
    pub(super) fn padding(&self) -> usize {
        self.kernel / 2
    }

    /// The sizes of the weight: height, width, inputs, outputs.
    pub(super) fn dims(&self) -> [usize; 4] {
        [self.kernel, self.kernel, self.inputs, self.outputs]
    }
}

/// A block: three convolutions beside the input, or beside a convolution of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) convs: [Conv; 3],
    pub(super) shortcut: Option<Conv>,
}

/// Classes of ImageNet.
pub(super) const CLASSES: usize = 1000;
/// Channels before the last matrix.
pub(super) const FEATURES: usize = 2048;

/// The first convolution.
pub(super) fn stem() -> Conv {
    let (name, norm) = ("conv1".to_owned(), "bn_conv1".to_owned());
    Conv { name, norm, kernel: 7, stride: 2, inputs: 3, outputs: 64 }
}

/// The blocks of all stages.
pub(super) fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut inputs = 64;
    for (stage, count) in [(2, 3), (3, 4), (4, 6), (5, 3)] {
        let width = 64 << (stage - 2);
        for letter in ('a'..='z').take(count) {
            let first = letter == 'a';
            let stride = if first && stage > 2 { 2 } else { 1 };
            let conv = |branch: &str, kernel, stride, inputs, outputs| Conv {
                name: format!("res{stage}{letter}_branch{branch}"),
                norm: format!("bn{stage}{letter}_branch{branch}"),
                kernel,
                stride,
                inputs,
                outputs,
            };
            blocks.push(Block {
                convs: [
                    conv("2a", 1, stride, inputs, width),
                    conv("2b", 3, 1, width, width),
                    conv("2c", 1, 1, width, 4 * width),
                ],
                shortcut: first.then(|| conv("1", 1, stride, inputs, 4 * width)),
            });
            inputs = 4 * width;
        }
    }
    blocks
}

/// All convolutions.
pub(super) fn convs() -> Vec<Conv> {
    let mut convs = vec![stem()];
    convs.extend(blocks().into_iter().flat_map(|block| block.convs.into_iter().chain(block.shortcut)));
    convs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_the_layers_of_resnet_50() {
        let convs = convs();
        assert_eq!(convs.len(), 53);
        let weights: usize = convs.iter().map(|conv| conv.dims().iter().product::<usize>()).sum();
        // With 26,560 biases and the last layer: the 25.6 million parameters of the paper without those of the norms.
        assert_eq!(weights + FEATURES * CLASSES, 25_502_912);
        let last = blocks().pop().unwrap();
        assert_eq!((last.convs[2].name.as_str(), last.convs[2].outputs), ("res5c_branch2c", FEATURES));
    }
}
