use std::fs;
use std::path::Path;

use super::*;

/// A file of Verilator's with these points: line, kind, what, lines, hierarchy, count.
fn file(rtl: &Path, points: &[(u32, &str, &str, &str, &str, u64)]) -> String {
    let mut text = String::from("# SystemC::Coverage-3\n");
    for (line, page, what, lines, instance, count) in points {
        text += &format!(
            "C '\x01f\x02{}/a.sv\x01l\x02{line}\x01n\x025\x01page\x02{page}/a\x01o\x02{what}\x01S\x02{lines}\x01h\x02{instance}' {count}\n",
            rtl.display()
        )
        .replace("\x01S\x02\x01", "\x01");
    }
    text
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.sv"), "one\n  two  \nthree\nfour\n").unwrap();
        Folder(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn counts(&self) -> Counts {
        let points: &[_] = &[
            (1, "v_line", "block", "1,3-4", "top.a", 4),
            (2, "v_branch", "if", "2", "top.a", 0),
            (2, "v_branch", "else", "", "top.a", 3),
            (3, "v_toggle", "x[0]", "", "top.a", 0),
        ];
        fs::write(self.path().join("1.dat"), file(self.path(), points)).unwrap();
        let reset: &[_] = &[(3, "v_toggle", "x[0]", "", "top.a", 9)];
        fs::write(self.path().join("1.reset.dat"), file(self.path(), reset)).unwrap();
        let other: &[_] = &[(3, "v_toggle", "x[0]", "", "top.b", 2)];
        fs::write(self.path().join("2.dat"), file(self.path(), other)).unwrap();
        Counts::read(self.path(), self.path()).unwrap()
    }

    fn waivers(&self, text: &str) -> Result<Waivers, CoverageError> {
        let path = self.path().join("waivers.toml");
        fs::write(&path, text).unwrap();
        Waivers::read(&path, self.path())
    }
}

#[test]
fn instances_and_files_are_added_up() {
    let folder = Folder::new();
    let counts = folder.counts();
    let (files, all) = counts.shares();
    assert_eq!(files.len(), 1);
    assert_eq!(all.lines, Share { met: 1, all: 1 });
    assert_eq!(all.branches, Share { met: 1, all: 2 });
    assert_eq!(all.toggles, Share { met: 1, all: 1 });
    let missed: Vec<_> = counts.missed().map(|p| (p.line, &*p.what)).collect();
    assert_eq!(missed, [(2, "if")]);
}

#[test]
fn lcov_has_each_line_once() {
    let folder = Folder::new();
    let mut out = Vec::new();
    write_lcov(&folder.counts(), Path::new("rtl"), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let expected = "SF:rtl/a.sv\nBRDA:2,0,1,3\nBRDA:2,0,2,0\nBRDA:3,1,3,2\nBRF:3\nBRH:2\n\
                    DA:1,4\nDA:2,0\nDA:3,4\nDA:4,4\nLF:4\nLH:3\nend_of_record\n";
    assert_eq!(text, expected);
}

#[test]
fn a_waiver_is_for_what_did_not_run() {
    let folder = Folder::new();
    let counts = folder.counts();
    let judge = |text: &str| {
        let waivers = folder.waivers(text).unwrap();
        let left = waivers.judge(counts.missed());
        left.map(|l| l.len()).map_err(|e| e.to_string())
    };
    assert_eq!(judge(""), Ok(1));
    let waiver = |line: &str, what: &str| {
        format!("[[waiver]]\nfile = 'a.sv'\nline = '{line}'\nwhat = '{what}'\nreason = 'r'\n")
    };
    assert_eq!(judge(&waiver("two", "if")), Ok(0));
    let idle = judge(&waiver("two", "else")).unwrap_err();
    assert!(idle.contains("of no use") && idle.contains("two"), "{idle}");
    let silent = folder.waivers(&waiver("two", "if").replace("'r'", "' '"));
    assert!(silent.unwrap_err().to_string().contains("without a reason"));
}

#[test]
fn a_bad_file_is_told_by_name_and_line() {
    let folder = Folder::new();
    let path = folder.path().join("3.dat");
    for (text, message) in [
        ("nothing\n", "3.dat:1: not a coverage file"),
        (
            "# SystemC::Coverage-3\nC 'x' 1\n",
            "3.dat:2: a field without",
        ),
        ("# SystemC::Coverage-3\nC '' x\n", "3.dat:2: not a count"),
        ("# SystemC::Coverage-3\nrest\n", "3.dat:2: not a point"),
    ] {
        fs::write(&path, text).unwrap();
        let error = Counts::read(folder.path(), folder.path()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    fs::remove_file(&path).unwrap();
    let none = Counts::read(folder.path(), folder.path()).unwrap_err();
    assert!(none.to_string().contains("no counts"), "{none}");
}
