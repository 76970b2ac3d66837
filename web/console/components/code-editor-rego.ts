import { StreamLanguage } from '@codemirror/language'

/** Enough of Rego to be read: comments, texts, keywords, numbers. What is wrong says the compiler. */
export const rego = StreamLanguage.define({
  name: 'rego',
  languageData: { commentTokens: { line: '#' } },
  token(stream) {
    if (stream.eatSpace()) return null
    if (stream.match(/^#.*/)) return 'comment'
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^`[^`]*`?/)) return 'string'
    if (stream.match(/^-?\d+(?:\.\d+)?/)) return 'number'
    const word = stream.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null
    if (word) return keywords.has(word[0]) ? 'keyword' : atoms.has(word[0]) ? 'atom' : 'variableName'
    stream.next()
    return null
  },
})

const keywords = new Set(
  ['package', 'import', 'as', 'default', 'else', 'if', 'in', 'contains', 'some', 'every', 'not', 'with'].concat([
    'input',
    'data',
  ]),
)
const atoms = new Set(['true', 'false', 'null'])
