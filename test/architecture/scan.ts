/**
 * A small scanner for TypeScript. TypeScript 7 has no stable compiler API, and a tool built on a missing one reports
 * success over nothing; so the rules read the tokens of this file.
 */
export type Token = {
  kind: 'word' | 'string' | 'template' | 'number' | 'regexp' | 'punct'
  text: string
  index: number
  line: number
}

export type Scan = { tokens: Token[]; comments: { text: string; line: number }[]; code: string }

const tokenPatterns = {
  space: /\s+/y,
  comment: /\/\/[^\n]*|\/\*[\s\S]*?\*\//y,
  string: /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y,
  template: /`(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y,
  templateRest: /\}(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y,
  word: /[#@]?[\p{ID_Start}_$][\p{ID_Continue}$]*/uy,
  number: /\.?\d(?:[\w.]|[eE][+-](?=\d))*/y,
  regexp: /\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y,
  punct: /=>|\.\.\.|\?\.|[\s\S]/y,
}

/** After these words a slash begins a regular expression, after any other word it divides. */
const wordsBeforeRegexp = new Set(
  'return typeof case in of delete void throw new await yield instanceof else do'.split(' '),
)

const mayBeginRegexp = (before: Token | undefined): boolean => {
  if (!before) return true
  if (before.kind === 'template') return before.text.endsWith('${')
  if (before.kind === 'word') return wordsBeforeRegexp.has(before.text)
  return before.kind === 'punct' && before.text !== ')' && before.text !== ']'
}

export const scan = (text: string): Scan => {
  const tokens: Token[] = []
  const comments: Scan['comments'] = []
  const code: string[] = []
  /** One entry per open `${`: how many braces are open inside it. */
  const holes: number[] = []
  let index = 0
  let line = 1

  const match = (form: RegExp): string | undefined => {
    form.lastIndex = index
    return form.exec(text)?.[0]
  }
  const addToken = (found: string, kind?: Token['kind']): void => {
    if (kind) tokens.push({ kind, text: found, index, line })
    // Strings keep their quotes in `code`, so that a quoted value still reads as a value.
    const newlines =
      kind === 'word' || kind === 'punct' || kind === 'number' ? found : found.replace(/[^\n]/g, ' ')
    code.push(kind === 'string' ? `'${' '.repeat(found.length - 2)}'` : newlines)
    index += found.length
    line += found.split('\n').length - 1
  }

  while (index < text.length) {
    const hole = holes.at(-1)
    const blank = match(tokenPatterns.space)
    if (blank) {
      addToken(blank)
      continue
    }
    const comment = match(tokenPatterns.comment)
    if (comment) {
      comments.push({ text: comment, line })
      addToken(comment)
      continue
    }
    const template =
      match(tokenPatterns.template) ?? (hole === 0 ? match(tokenPatterns.templateRest) : undefined)
    if (template) {
      if (template.startsWith('}')) holes.pop()
      if (template.endsWith('${')) holes.push(0)
      addToken(template, 'template')
      continue
    }
    const regexp = mayBeginRegexp(tokens.at(-1)) ? match(tokenPatterns.regexp) : undefined
    const quoted = match(tokenPatterns.string)
    const word = match(tokenPatterns.word)
    const number = match(tokenPatterns.number)
    if (quoted) addToken(quoted, 'string')
    else if (regexp) addToken(regexp, 'regexp')
    else if (word) addToken(word, 'word')
    else if (number) addToken(number, 'number')
    else {
      const punct = match(tokenPatterns.punct) ?? ''
      if (hole !== undefined && punct === '{') holes[holes.length - 1] = hole + 1
      if (hole !== undefined && punct === '}') holes[holes.length - 1] = hole - 1
      addToken(punct, 'punct')
    }
  }
  return { tokens, comments, code: code.join('') }
}

/** The index of the closing bracket that belongs to the opening one at `open`. */
export const closingIndex = (tokens: Token[], open: number): number => {
  let depth = 0
  for (let at = open; at < tokens.length; at++) {
    const token = tokens[at]
    if (token?.kind === 'template') {
      // A template's text is one token up to `${`, and continues with the `}` that closes the hole.
      if (token.text.endsWith('${')) depth += token.text.startsWith('}') ? 0 : 1
      else if (token.text.startsWith('}')) depth--
      continue
    }
    if (token?.kind !== 'punct') continue
    if ('([{'.includes(token.text)) depth++
    if (')]}'.includes(token.text) && --depth === 0) return at
  }
  return tokens.length - 1
}
