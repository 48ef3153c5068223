//! The lexer of the text form: words, strings, arrows, slashes and ends of lines.
//!
//! The lexer has a current token and its offset. It never fails: invalid text becomes
//! [`Token::Bad`], which no rule of the grammar accepts.

/// A token. Words and strings are slices of the text, with the escapes of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A sequence of bytes without blanks, `#`, `"`, `/` and `->`.
    Word(&'a str),
    /// The text between quotes.
    Quoted(&'a str),
    /// `->`
    Arrow,
    /// `/`
    Slash,
    /// The end of a line that is not empty, with its comment.
    EndOfLine,
    /// The end of the text.
    EndOfFile,
    /// Invalid text, and what is wrong.
    Bad(&'static str),
}

/// A text and a current token in it.
pub(super) struct Lexer<'a> {
    text: &'a str,
    token: Token<'a>,
    start: usize,
    next: usize,
}

impl<'a> Lexer<'a> {
    /// A lexer at the first token of the first line that is not empty.
    pub(super) fn new(text: &'a str) -> Self {
        let next = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
        let mut this = Self { text, token: Token::EndOfLine, start: next, next };
        this.next_line();
        this
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The current token.
    #[inline]
    pub(super) fn token(&self) -> Token<'a> {
        self.token
    }

    /// The offset of the current token in bytes.
    #[inline]
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Moves from the end of a line to the first token of the next line that is not empty.
    pub(super) fn next_line(&mut self) {
        while self.token == Token::EndOfLine {
            if self.peek(0).is_none() {
                self.token = Token::EndOfFile;
                return;
            }
            self.advance();
        }
    }

    /// Moves to the next token; from the end of a line, to the next line.
    pub(super) fn advance(&mut self) {
        while matches!(self.peek(0), Some(b' ' | b'\t' | b'\r')) {
            self.next += 1;
        }
        self.start = self.next;
        self.token = match self.peek(0) {
            None => Token::EndOfLine,
            Some(b'#') => {
                self.next = self.find(|b| b == b'\n');
                self.end_line()
            }
            Some(b'\n') => self.end_line(),
            Some(b'"') => self.quoted(),
            Some(b'/') => self.punctuation(1, Token::Slash),
            Some(b'-') if self.peek(1) == Some(b'>') => self.punctuation(2, Token::Arrow),
            Some(_) => self.word(),
        };
    }

    fn end_line(&mut self) -> Token<'a> {
        self.next = (self.next + 1).min(self.text.len());
        Token::EndOfLine
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.next + ahead).copied()
    }

    /// The offset of the next byte for which `stop` holds, or of the end.
    fn find(&self, stop: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[self.next..];
        self.next + rest.iter().position(|&b| stop(b)).unwrap_or(rest.len())
    }

    fn punctuation(&mut self, bytes: usize, token: Token<'a>) -> Token<'a> {
        self.next += bytes;
        token
    }

    fn word(&mut self) -> Token<'a> {
        let bytes = self.text.as_bytes();
        let mut end = self.next;
        while end < bytes.len() {
            match bytes[end] {
                b' ' | b'\t' | b'\r' | b'\n' | b'#' | b'"' | b'/' => break,
                b'-' if bytes.get(end + 1) == Some(&b'>') => break,
                _ => end += 1,
            }
        }
        self.next = end;
        Token::Word(&self.text[self.start..end])
    }

    fn quoted(&mut self) -> Token<'a> {
        self.next += 1;
        let content = self.next;
        loop {
            self.next = self.find(|b| matches!(b, b'"' | b'\\' | b'\n'));
            match self.peek(0) {
                Some(b'"') => break,
                Some(b'\\') if matches!(self.peek(1), Some(b'"' | b'\\')) => self.next += 2,
                Some(b'\\') => return Token::Bad("a backslash that is neither \\\" nor \\\\"),
                _ => return Token::Bad("a string without its closing quote"),
            }
        }
        let content = &self.text[content..self.next];
        self.next += 1;
        if content.chars().any(char::is_control) {
            return Token::Bad("a string with a control character in it");
        }
        Token::Quoted(content)
    }
}

/// A string without its escapes.
pub(super) fn unquote(content: &str) -> String {
    let mut text = String::with_capacity(content.len());
    let mut rest = content.chars();
    while let Some(c) = rest.next() {
        text.extend(if c == '\\' { rest.next() } else { Some(c) });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(usize, Token<'_>)> {
        let mut lexer = Lexer::new(text);
        let mut out = Vec::new();
        while lexer.token() != Token::EndOfFile && out.len() < 50 {
            out.push((lexer.start(), lexer.token()));
            match lexer.token() {
                Token::EndOfLine => lexer.next_line(),
                Token::Bad(_) => break,
                _ => lexer.advance(),
            }
        }
        out
    }

    #[test]
    fn lines_are_words_arrows_slashes_and_strings() {
        use Token::{Arrow, EndOfLine, Quoted, Slash, Word};
        assert_eq!(
            tokens("# note\n\n a-b->c3/ch0 \"q \\\" #\"x#y\r\n\tz"),
            [
                (9, Word("a-b")),
                (12, Arrow),
                (14, Word("c3")),
                (16, Slash),
                (17, Word("ch0")),
                (21, Quoted("q \\\" #")),
                (29, Word("x")),
                (30, EndOfLine),
                (35, Word("z")),
                (36, EndOfLine),
            ]
        );
        assert_eq!(tokens(""), []);
        assert_eq!(tokens("\u{FEFF}# only\n   \n"), []);
        assert_eq!(unquote("a\\\"b\\\\"), "a\"b\\");
    }

    #[test]
    fn invalid_strings_are_bad_tokens() {
        for text in ["\"a", "\"a\nb\"", "\"a\\n\"", "\"\\", "\"a\tb\""] {
            assert!(matches!(tokens(text)[..], [(0, Token::Bad(_))]), "{text:?}");
        }
    }
}
