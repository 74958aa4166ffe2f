import { closingIndex, type Token } from './scan.ts'

/** Lines `from` to `to` of one function, its parameters and the functions in it included. */
export type Span = { from: number; to: number }

const controls = new Set(['if', 'for', 'while', 'switch', 'catch', 'with'])
const continuation = /^(\.|\?\.|\?|:|&|\||\+|-|\*|\/|%|<|>|=|,|\))$/

const openingIndex = (tokens: Token[], close: number): number => {
  let depth = 0
  for (let at = close; at >= 0; at--) {
    const token = tokens[at]
    if (token?.kind !== 'punct') continue
    if (')]}'.includes(token.text)) depth++
    if ('([{'.includes(token.text) && --depth === 0) return at
  }
  return 0
}

/**
 * The last token of an expression that begins at `start`; the end of a line closes it unless an operator continues it.
 */
const expressionEnd = (tokens: Token[], start: number): number => {
  for (let at = start; at < tokens.length; at++) {
    const token = tokens[at]
    if (token?.kind === 'template' && token.text.endsWith('${')) {
      at = closingIndex(tokens, at)
    } else if (token?.kind === 'punct') {
      if (')]},;'.includes(token.text)) return at - 1
      if ('([{'.includes(token.text)) at = closingIndex(tokens, at)
    }
    const last = tokens[at]
    const next = tokens[at + 1]
    if (!next) return at
    const lastLine = (last?.line ?? 0) + (last?.kind === 'template' ? last.text.split('\n').length - 1 : 0)
    const open = last?.kind === 'punct' && !')]}'.includes(last.text)
    if (next.line > lastLine && !open && !(next.kind === 'punct' && continuation.test(next.text))) return at
  }
  return tokens.length - 1
}

/** Works on tokens without types: there, `) {` opens a body unless a control word precedes the brackets. */
export const functionSpans = (tokens: Token[]): Span[] => {
  const spans: Span[] = []
  for (const [at, token] of tokens.entries()) {
    const before = tokens[at - 1]
    if (token.kind !== 'punct') continue
    if (token.text === '=>') {
      const first = before?.text === ')' ? tokens[openingIndex(tokens, at - 1)] : before
      const body = tokens[at + 1]
      const end = body?.text === '{' ? closingIndex(tokens, at + 1) : expressionEnd(tokens, at + 1)
      spans.push({ from: first?.line ?? token.line, to: tokens[end]?.line ?? token.line })
    } else if (token.text === '{' && before?.text === ')') {
      const open = openingIndex(tokens, at - 1)
      const name = tokens[open - 1]
      if (name?.kind === 'word' && controls.has(name.text)) continue
      if (name?.text === 'await' && tokens[open - 2]?.text === 'for') continue
      spans.push({ from: name?.line ?? token.line, to: tokens[closingIndex(tokens, at)]?.line ?? token.line })
    }
  }
  return spans
}

export type Callable = { params: Token[]; body: Token[] }

/** Functions of a file by the tokens of their parameters and of their body. */
export const callables = (tokens: Token[]): Callable[] =>
  tokens.flatMap((token, at) => {
    const before = tokens[at - 1]
    const isArrow = token.text === '=>'
    if (token.kind !== 'punct' || (!isArrow && !(token.text === '{' && before?.text === ')'))) return []
    const first = before?.text === ')' ? openingIndex(tokens, at - 1) : at - 1
    const head = tokens[first - 1]
    if (!isArrow && head?.kind === 'word' && controls.has(head.text)) return []
    const start = isArrow ? at + 1 : at
    const isBlock = tokens[start]?.text === '{'
    const end = isBlock ? closingIndex(tokens, start) : expressionEnd(tokens, start)
    return [{ params: tokens.slice(first, at), body: tokens.slice(start, end + 1) }]
  })

/** Bodies of loops and races, by index in the text: a wait inside one polls a condition or is its deadline. */
export const waitSpans = (tokens: Token[]): { from: number; to: number }[] =>
  tokens.flatMap((token, at) => {
    if (token.kind !== 'word') return []
    const span = (end: number) => [{ from: token.index, to: tokens[end]?.index ?? token.index }]
    if (token.text === 'race' && tokens[at - 2]?.text === 'Promise') return span(closingIndex(tokens, at + 1))
    if (!/^(while|for|do)$/.test(token.text) || tokens[at - 1]?.text === '.') return []
    const head = tokens[at + 1]?.text === 'await' ? at + 2 : at + 1
    const body = token.text === 'do' ? at + 1 : closingIndex(tokens, head) + 1
    return span(tokens[body]?.text === '{' ? closingIndex(tokens, body) : expressionEnd(tokens, body))
  })
