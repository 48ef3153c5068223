//! The numbers of the ConSet paper (Feldmann, Stricker, Warfel), as printed.
//!
//! Tables 1 to 3 (section 5.1) and 4 to 6 (section 5.2). The compiler, the fabric and the presets do
//! not use these numbers; they are only reported beside ours.

/// Data sizes of Tables 1 to 3, in words.
pub const WORDS: [u32; 4] = [32, 256, 2048, 16384];

/// Clocks of a context switch in the paper's predictions. Section 4.2.1 gives 352 + 176 = 528, but every
/// prediction in Tables 1, 2, 3 and 6 is a whole number of times 520 plus access time.
pub const PREDICTED_SWITCH: u64 = 520;

/// One of Tables 1 to 3: a pattern at four sizes, in clocks, in the order of [`WORDS`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PaperPattern {
    /// The number of the table.
    pub table: u8,
    /// The number of the figure that shows it as bandwidth.
    pub figure: u8,
    /// The pattern's name in specifications.
    pub pattern: &'static str,
    /// Its name in the paper.
    pub title: &'static str,
    /// Phases of the paper's compiler (sections 5.1.1 to 5.1.3).
    pub phases: u64,
    /// ConSet, predicted.
    pub conset_predicted: [u64; 4],
    /// ConSet, measured.
    pub conset_measured: [u64; 4],
    /// Message passing, predicted.
    pub message_predicted: [u64; 4],
    /// Message passing, measured.
    pub message_measured: [u64; 4],
}

/// Tables 1 to 3.
pub const PATTERNS: [PaperPattern; 3] = [
    PaperPattern {
        table: 1,
        figure: 2,
        pattern: "torus",
        title: "torus",
        phases: 1,
        conset_predicted: [776, 2_568, 16_909, 131_592],
        conset_measured: [1_168, 2_984, 17_408, 132_768],
        message_predicted: [3_456, 5_248, 19_584, 134_272],
        message_measured: [3_760, 5_720, 20_012, 135_224],
    },
    PaperPattern {
        table: 2,
        figure: 3,
        pattern: "hypercube",
        title: "hypercube (butterfly)",
        phases: 2,
        conset_predicted: [1_424, 4_112, 25_616, 197_216],
        conset_measured: [2_448, 6_952, 43_182, 332_848],
        message_predicted: [5_184, 7_872, 29_376, 201_408],
        message_measured: [6_208, 10_792, 48_320, 343_192],
    },
    PaperPattern {
        table: 3,
        figure: 4,
        pattern: "all-to-all",
        title: "all-to-all",
        phases: 30,
        conset_predicted: [19_631, 47_856, 273_648, 2_075_448],
        conset_measured: [54_112, 184_544, 1_258_616, 9_973_024],
        message_predicted: [55_296, 83_968, 313_344, 2_148_352],
        message_measured: [120_960, 274_136, 1_358_632, 11_210_048],
    },
];

/// A column of Tables 4 to 6: a finite element mesh.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PaperMesh {
    /// Its name.
    pub name: &'static str,
    /// Table 4: elements.
    pub elements: u64,
    /// Table 4: nodes.
    pub nodes: u64,
    /// Table 4: elements per processor, least and most.
    pub elements_per_cell: [u64; 2],
    /// Table 4: "Comm. per proc.", least and most words.
    pub words_per_cell: [u64; 2],
    /// Table 4: in/out-degree.
    pub degree: u64,
    /// Table 4: phases.
    pub phases: u64,
    /// Table 5: computation, clocks.
    pub compute_clocks: u64,
    /// Table 5: computation, MFLOPS of the whole machine.
    pub compute_mflops: f64,
    /// Table 6: ConSet, predicted.
    pub conset_predicted: u64,
    /// Table 6 (and 5): ConSet, measured.
    pub conset_measured: u64,
    /// Table 6: message passing, predicted.
    pub message_predicted: u64,
    /// Table 6: message passing, measured.
    pub message_measured: u64,
    /// Table 5: bandwidth, MB/s. It is 64 cells x the most words per cell x 4 bytes / the time.
    pub bandwidth: f64,
}

/// Tables 4 to 6.
pub const MESHES: [PaperMesh; 4] = [
    PaperMesh {
        name: "m11k",
        elements: 20_998,
        nodes: 11_000,
        elements_per_cell: [307, 346],
        words_per_cell: [47, 133],
        degree: 8,
        phases: 2,
        compute_clocks: 22_696,
        compute_mflops: 189.44,
        conset_predicted: 4_786,
        conset_measured: 5_352,
        message_predicted: 8_378,
        message_measured: 8_730,
        bandwidth: 127.23,
    },
    PaperMesh {
        name: "c10k",
        elements: 20_141,
        nodes: 10_240,
        elements_per_cell: [294, 341],
        words_per_cell: [46, 189],
        degree: 5,
        phases: 2,
        compute_clocks: 21_064,
        compute_mflops: 199.04,
        conset_predicted: 5_066,
        conset_measured: 5_816,
        message_predicted: 6_752,
        message_measured: 10_968,
        bandwidth: 166.38,
    },
    PaperMesh {
        name: "c100k",
        elements: 204_873,
        nodes: 105_000,
        elements_per_cell: [2_987, 3_444],
        words_per_cell: [116, 638],
        degree: 13,
        phases: 3,
        compute_clocks: 186_632,
        compute_mflops: 200.96,
        conset_predicted: 19_774,
        conset_measured: 20_432,
        message_predicted: 19_508,
        message_measured: 24_164,
        bandwidth: 159.87,
    },
    PaperMesh {
        name: "q20k",
        elements: 20_000,
        nodes: 22_451,
        elements_per_cell: [286, 330],
        words_per_cell: [357, 1_070],
        degree: 22,
        phases: 5,
        compute_clocks: 118_096,
        compute_mflops: 273.92,
        conset_predicted: 35_910,
        conset_measured: 37_152,
        message_predicted: 32_852,
        message_measured: 47_700,
        bandwidth: 147.75,
    },
];
