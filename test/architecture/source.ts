import { stripTypeScriptTypes } from 'node:module'
import { closingIndex, type Scan, scan, type Token } from './scan.ts'

export type Import = {
  /** Undefined where the argument is computed. */
  specifier: string | undefined
  names: string[]
  kind: 'value' | 'type'
  /** Dynamic: reached only when its line runs. */
  form: 'static' | 'dynamic'
  line: number
}

/** A file as the rules see it: as written, and as it runs once its types are stripped. */
export type Source = {
  path: string
  text: string
  written: Scan
  running: Scan
  imports: Import[]
  fault?: string
}

const unquoted = (token: Token | undefined): string | undefined =>
  token?.kind === 'string' || (token?.kind === 'template' && token.text.endsWith('`'))
    ? token.text.slice(1, -1)
    : undefined

type Found = Omit<Import, 'kind'> & { index: number }

/** The string after `from`, for `import x, { y } from` and `export { y } from`. */
const fromClause = (tokens: Token[], start: number): { specifier: string; names: string[] } | undefined => {
  const names: string[] = []
  for (let at = start; at < tokens.length; at++) {
    const token = tokens[at]
    const next = unquoted(tokens[at + 1])
    if (token?.kind === 'word' && token.text === 'from' && next !== undefined)
      return { specifier: next, names }
    if (token?.kind === 'word') names.push(token.text)
    else if (token?.kind !== 'punct' || !'{},*'.includes(token.text)) return undefined
  }
  return undefined
}

/** Names that hold the result of `createRequire`, so that `require('x')` under any name is found. */
const requireNames = (tokens: Token[]): Set<string> => {
  const names = new Set(['require'])
  for (const [at, token] of tokens.entries())
    if (token.text === 'createRequire' && tokens[at - 1]?.text === '=' && tokens[at - 2]?.kind === 'word')
      names.add(tokens[at - 2]?.text ?? '')
  return names
}

const argument = (tokens: Token[], open: number): string | undefined => {
  const end = tokens[open + 2]?.text
  return end === ')' || end === ',' ? unquoted(tokens[open + 1]) : undefined
}

const importsIn = (tokens: Token[]): Found[] => {
  const found: Found[] = []
  const requires = requireNames(tokens)
  for (const [at, token] of tokens.entries()) {
    if (token.kind !== 'word' || tokens[at - 1]?.text === '.' || tokens[at - 1]?.text === '?.') continue
    const next = tokens[at + 1]
    const add = (specifier: string | undefined, names?: string[]) => {
      const form = names ? 'static' : 'dynamic'
      found.push({ index: token.index, line: token.line, specifier, names: names ?? [], form })
    }
    if (token.text === 'import') {
      const direct = unquoted(next)
      if (direct !== undefined) add(direct, [])
      else if (next?.text === '(') add(argument(tokens, at + 1))
      else if (next?.text === '.') {
        if (tokens[at + 4]?.text === 'resolve') add(argument(tokens, at + 5))
      } else {
        const clause = fromClause(tokens, at + 1)
        if (clause) add(clause.specifier, clause.names)
      }
    } else if (
      token.text === 'export' &&
      (next?.text === '{' || next?.text === '*' || next?.text === 'type')
    ) {
      const clause = fromClause(tokens, at + 1)
      if (clause) add(clause.specifier, clause.names)
    } else if (requires.has(token.text)) {
      if (next?.text === '(') add(argument(tokens, at + 1))
      else if (next?.text === '.' && tokens[at + 2]?.text === 'resolve') add(argument(tokens, at + 3))
    } else if (token.text === 'createRequire' && next?.text === '(') {
      const end = closingIndex(tokens, at + 1)
      if (tokens[end + 1]?.text === '(') add(argument(tokens, end + 1))
    }
  }
  return found
}

/** Stripping blanks types and moves nothing, so an import that is still at its index is a value. */
export const source = (path: string, text: string): Source => {
  const written = scan(text)
  let stripped: string
  try {
    stripped = stripTypeScriptTypes(text)
  } catch (cause) {
    const fault = `does not run with its types stripped: ${cause instanceof Error ? cause.message : cause}`
    return { path, text, written, running: written, imports: [], fault }
  }
  const running = scan(stripped)
  const values = new Set(importsIn(running.tokens).map((found) => found.index))
  const imports = importsIn(written.tokens).map(
    ({ index, ...found }): Import => ({ ...found, kind: values.has(index) ? 'value' : 'type' }),
  )
  return { path, text, written, running, imports }
}
