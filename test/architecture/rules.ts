import { posix } from 'node:path'
import { type Finding, isOurs, roomOf } from './import-rules.ts'
import { forbiddenNames } from './name-rules.ts'
import { closingIndex, type Token } from './scan.ts'
import type { Source } from './source.ts'
import { callables, functionSpans, waitSpans } from './spans.ts'
import * as tables from './tables.ts'

type Rule = (file: Source) => { line: number; says: string }[]

const inSrc = (file: Source) => file.path.startsWith('src/')
const isTest = (file: Source) => file.path.endsWith('.test.ts')

const lineAt = (text: string, index: number) => text.slice(0, index).split('\n').length

/** Every match of `pattern` in the code (comments and strings are blank there). */
const findMatches = (code: string, pattern: RegExp, says: string) =>
  [...code.matchAll(pattern)].map((hit) => ({ line: lineAt(code, hit.index), says }))

const names: Rule = (file) => {
  const stem = posix.basename(file.path).replace(/(\.(test|bench|d))?\.ts$/, '')
  const found: string[] = []
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(stem)) found.push(`the file name ${stem} is not kebab-case`)
  for (const part of [...posix.dirname(file.path).split('/'), stem])
    if (
      tables.bannedNames.includes(part) ||
      part.split('-').some((word) => tables.bannedWords.includes(word))
    )
      found.push(`the name ${part} says nothing`)
  return found.map((says) => ({ line: 1, says }))
}

const makesOperations = ({ path, imports }: Source) =>
  path.startsWith('src/features/') &&
  imports.some(({ names: imported }) => imported.some((name) => tables.operationParts.includes(name)))

const size: Rule = (file) => {
  if (!isOurs(file.path)) return []
  const raised = tables.raisedLimits[file.path]
  const fileMax = raised?.fileLines ?? tables.limits.fileLines
  const { functionLines, operationLines } = tables.limits
  const functionMax = makesOperations(file) ? operationLines : (raised?.functionLines ?? functionLines)
  const exempt = tables.fileLinesExempt.test(file.path)
  const lines = file.text.trimEnd().split('\n').length
  const found: { line: number; says: string }[] = []
  if (!exempt && lines > fileMax) found.push({ line: fileMax, says: `${lines} lines, at most ${fileMax}` })
  if (exempt || isTest(file)) return found
  for (const { from, to } of functionSpans(file.running.tokens))
    if (to - from + 1 > functionMax)
      found.push({ line: from, says: `a function of ${to - from + 1} lines, at most ${functionMax}` })
  return found
}

/** A literal spread into a literal hides several entries on one line, and switches excess-property checks off. */
const noPacking: Rule = (file) => {
  const { tokens } = file.running
  const isPacked = (at: number): boolean => {
    const bracket = tokens[at + 1]?.text === '(' ? at + 2 : at + 1
    if (!'[{'.includes(tokens[bracket]?.text ?? ' ')) return false
    const after = tokens[closingIndex(tokens, at + 1) + 1]
    return after === undefined || ',)}]'.includes(after.text)
  }
  return tokens.flatMap(({ text, line }, at) =>
    text === '...' && isPacked(at)
      ? [{ line, says: 'a literal spread into a literal; write its entries' }]
      : [],
  )
}

/** Stripped code is a type, so an `any` that stripping removes is a type. */
const noAny: Rule = (file) =>
  file.written.tokens
    .filter((token) => token.kind === 'word' && token.text === 'any')
    .filter((token) => file.running.code[token.index] === ' ')
    .map((token) => ({ line: token.line, says: 'any takes the types away; say unknown and look' }))

/** A double cast accepts any value for any type: only the listed borders use it. */
const noDoubleCast: Rule = (file) => {
  if (!inSrc(file) || isTest(file)) return []
  const expected = tables.castBorders[file.path]?.casts ?? 0
  const found = findMatches(
    file.written.code,
    /\bas\s+unknown\s+as\b/g,
    'a double cast; derive the type, or list the border in tables.ts',
  )
  if (found.length >= expected) return found.length === expected ? [] : found
  return [{ line: 1, says: `${found.length} double casts, and ${expected} are listed in tables.ts` }]
}

const noDefaultExport: Rule = (file) => [
  ...findMatches(file.written.code, /\bexport\s+default\b/g, 'a default export has no name of its own'),
  ...findMatches(file.written.code, /\bas\s+default\b/g, 'a default export has no name of its own'),
]

const typeNotInterface: Rule = (file) => {
  let depth = 0
  const found: { line: number; says: string }[] = []
  for (const [at, token] of file.written.tokens.entries()) {
    if (token.text === '{' || token.text.endsWith('${')) depth++
    if (token.text === '}' || (token.kind === 'template' && token.text.startsWith('}'))) depth--
    const named = file.written.tokens[at + 1]?.kind === 'word'
    // Inside `declare module` an interface is the only way to extend a foreign one.
    if (token.kind === 'word' && token.text === 'interface' && named && depth === 0)
      found.push({ line: token.line, says: 'write type, not interface' })
  }
  return found
}

const classesOnlyForErrors: Rule = (file) =>
  isOurs(file.path)
    ? findMatches(
        file.running.code,
        /(?<![.\w$])class\b(?=\s+\w|\s*\{)(?!\s+\w+\s+extends\s+\w*(Error|Fault)\b)/g,
        'a class that is no error',
      )
    : []

const environment: Rule = (file) => {
  if (!isOurs(file.path) || tables.environmentReaders.includes(file.path)) return []
  const says = 'only config.ts reads the environment'
  return [
    ...findMatches(file.running.code, /\bprocess\s*(\?\.|\.)\s*env\b/g, says),
    ...findMatches(file.running.code, /\bprocess\s*(\?\.)?\s*\[/g, says),
    ...file.imports
      .filter((found) => /^(node:)?process$/.test(found.specifier ?? '') && found.names.includes('env'))
      .map((found) => ({ line: found.line, says })),
  ]
}

/** The names under which a file calls the timers of node:timers/promises. */
const timerNames = (file: Source) =>
  file.imports
    .filter((found) => found.specifier === 'node:timers/promises' && found.kind === 'value')
    .flatMap(({ names }) =>
      names.flatMap((name, at) => (name === 'as' || names[at + 1] === 'as' ? [] : [name])),
    )

const noSleep: Rule = (file) => {
  const concerns = isTest(file) || (file.path.startsWith('test/') && !file.path.startsWith('test/harness/'))
  if (!concerns) return []
  const code = file.running.code
  const waits = waitSpans(file.running.tokens)
  const calls = timerNames(file).map(
    (name) => new RegExp(`(?<![.\\w$])${name}\\s*(\\.\\s*\\w+\\s*)?\\(`, 'g'),
  )
  const pauses = [
    ...calls,
    /\bnew\s+Promise\s*\([^;{}]{0,80}=>\s*\{?\s*(void\s+)?setTimeout\b/g,
    /\bpromisify\s*\(\s*setTimeout\b/g,
    /\bAtomics\s*\.\s*wait\b/g,
  ].flatMap((pattern) => [...code.matchAll(pattern)].map((hit) => hit.index))
  return pauses
    .filter((index) => !waits.some((wait) => wait.from < index && index <= wait.to))
    .map((index) => ({ line: lineAt(code, index), says: 'a sleep in a test; poll a condition in a loop' }))
}

const honestTests: Rule = (file) => {
  if (!isTest(file)) return []
  const code = file.running.code
  return [
    // A clock under the control of a test is no mock: it replaces waiting, not behaviour.
    ...findMatches(code, /(?<![\w$])mock\s*\.\s*(?!timers\b)\w/g, 'a mock proves the mock'),
    ...findMatches(code, /\b(test|it|describe|suite)\s*\.\s*(only|skip|todo)\b/g, 'this test does not run'),
    ...findMatches(code, /\b(only|skip|todo)\s*:\s*true\b/g, 'this test does not run'),
  ]
}

const comments: Rule = (file) =>
  file.written.comments
    .filter((comment) => /\b(TODO|FIXME|XXX)\b/.test(comment.text))
    .map((comment) => ({ line: comment.line, says: 'a promise in a comment; keep it or leave it out' }))

/**
 * The usual beginnings of a comment that has no subject. A fragment that begins otherwise passes, and a sentence such as
 * "Longer delays are left to the poll" is refused only with these words behind the first one.
 */
const fragment =
  /^\/(?:\*\*?|\/)[\s*]*(?:Of (?!course)|By \w+, |Likewise\b|(?:Longer|Shorter) than\b|(?:Undefined|Null) where\b|Also \w+ed\b)/

const commentSubjects: Rule = (file) =>
  isOurs(file.path) && !isTest(file)
    ? file.written.comments
        .filter((comment) => fragment.test(comment.text))
        .map((comment) => ({ line: comment.line, says: 'a comment without a subject; write a sentence' }))
    : []

const runs: Rule = (file) => (file.fault ? [{ line: 1, says: file.fault }] : [])

/** Custody: keystore and signer hold decrypted keys, and only the composition root passes them on. */
const custodyFile = /^engines\/custody\/(keystore|signer)[a-z0-9-]*(\.test)?\.ts$/

const custody: Rule = (file) => {
  const path = roomOf(file.path)
  // Tests compose parts as compose does.
  if (path === 'compose/custody.ts' || custodyFile.test(path) || file.path.startsWith('test/')) return []
  return file.imports
    .filter((found) => found.kind === 'value' && found.specifier !== undefined)
    .filter((found) => {
      const specifier = found.specifier ?? ''
      const target = specifier.startsWith('#')
        ? specifier.slice(1)
        : roomOf(posix.join(posix.dirname(file.path), specifier))
      return custodyFile.test(target)
    })
    .map((found) => ({
      line: found.line,
      says: `${found.specifier} holds keys; compose/custody.ts hands it in`,
    }))
}

const partImports = ['#kernel/async/ttl-cache.ts', '#kernel/metrics.ts']

/**
 * `compose` connects parts: a cache and a metric stand in the part that they belong to, and the figures that the
 * capabilities show in the section that keeps them. A literal that is spread into a section is not found.
 */
const wiring: Rule = (file) => {
  if (!file.path.startsWith('src/compose/')) return []
  const { tokens } = file.running
  const fromFeatures = new Set(
    file.imports
      .filter(({ specifier }) => specifier?.startsWith('#features/'))
      .flatMap(({ names: imported }) => imported),
  )
  const facts = tokens.filter(
    ({ text }, at) =>
      text === 'facts' &&
      /^[:=]$/.test(tokens[at + 1]?.text ?? '') &&
      !fromFeatures.has(tokens[at + 2]?.text ?? ''),
  )
  // The metrics of the process and of its pools have no part of their own.
  const built = file.imports.filter(
    ({ kind, specifier = '' }) =>
      kind === 'value' && partImports.includes(specifier) && file.path !== 'src/compose/metrics.ts',
  )
  return [
    ...facts.map(({ line }) => ({ line, says: 'the facts of a section are built in src/features' })),
    ...built.map(({ line, specifier }) => ({ line, says: `${specifier} belongs in the part that uses it` })),
  ]
}

/** A policy receipt carries a brand that no other file can name, and only receipt.ts may create one. */
const receipt: Rule = (file) => {
  const code = file.written.code
  // A test forges one, to prove its rejection.
  const maker = file.path === 'src/features/policy/receipt.ts' || file.path.startsWith('test/')
  return [
    ...findMatches(
      code,
      /\bexport\s+(declare\s+)?const\s+\w+\s*:\s*unique\s+symbol\b/g,
      'an exported brand is no brand',
    ),
    ...(maker
      ? []
      : [
          ...findMatches(code, /\bas\s+PolicyReceipt\b/g, 'only policy/receipt.ts makes a policy receipt'),
          ...findMatches(code, /\bis\s+PolicyReceipt\b/g, 'only policy/receipt.ts makes a policy receipt'),
          ...findMatches(code, /\bPolicyReceipt\s+as\s+\w/g, 'a policy receipt goes by its own name'),
        ]),
  ]
}

/** Names under which features and engine know the pool. */
const poolNames = new Set(['db', 'pool'])
const poolMethods = new Set(['query', 'connect'])

/**
 * An act holds a connection: if it waits for a second one, as many acts as the pool has connections deadlock. So a
 * function with a parameter `tx` passes no pool on and queries none, unless it has named its transaction so.
 */
const poolInAct: Rule = (file) => {
  if (!inSrc(file) || isTest(file)) return []
  const found = new Set<number>()
  for (const { params, body } of callables(file.running.tokens)) {
    if (
      !params.some(({ kind, text }, at) => kind === 'word' && text === 'tx' && params[at + 1]?.text !== ':')
    )
      continue
    const isOwn = (name: string) =>
      [...params, ...body].some(
        ({ text }, at, all) =>
          text === name &&
          all[at - 1]?.text === 'const' &&
          all[at + 1]?.text === '=' &&
          all[at + 2]?.text === 'tx',
      )
    for (const [at, token] of body.entries()) {
      if (token.kind !== 'word' || !poolNames.has(token.text) || isOwn(token.text)) continue
      const [before, next] = [body[at - 1]?.text ?? '', body[at + 1]?.text ?? '']
      if (before === '.' && !/^(needs|deps|transactions|database)$/.test(body[at - 2]?.text ?? '')) continue
      const isHandedOn = /^[(,.]$/.test(before) && /^[),]$/.test(next)
      const isAsked = next === '.' && poolMethods.has(body[at + 2]?.text ?? '')
      if (isHandedOn || isAsked) found.add(token.line)
    }
  }
  return [...found].map((line) => ({ line, says: 'inside a transaction every query goes through it' }))
}

/** One form for a shortage of money: kernel/money/insufficient-balance.ts states symbol, decimals and both figures. */
const shortage: Rule = (file) => {
  if (!inSrc(file) || file.path === 'src/kernel/money/insufficient-balance.ts' || isTest(file)) return []
  const says = 'a shortage is reported by insufficientBalance of kernel/money/insufficient-balance.ts'
  return [...file.text.matchAll(/\bnew\s+Fault\s*\(\s*['"`]insufficient_balance['"`]/g)].map((hit) => ({
    line: lineAt(file.text, hit.index),
    says,
  }))
}

/**
 * Money is decimal text and whole units. Where floats are allowed, the results are the same on every machine: square
 * roots are exact to the last bit, other functions are not.
 */
const floats: Rule = (file) => {
  if (!inSrc(file) || isTest(file)) return []
  const place = tables.floatPlaces.find(({ path }) => file.path.startsWith(path))
  if (place && !place.path.endsWith('/')) return []
  const uneven = findMatches(
    file.running.code,
    /\bMath\s*\.\s*(cbrt|log\w*|exp\w*|pow|hypot|a?sinh?|a?cosh?|a?tanh?|atan2)\b/g,
    'machines round this differently',
  )
  if (place) return uneven
  return [
    ...uneven,
    ...findMatches(
      file.running.code,
      /\bMath\s*\.\s*sqrt\b|\bparseFloat\b|\.\s*to(Fixed|Precision|Exponential)\b/g,
      'a float; use decimal text and kernel/money/money.ts, or list the place in tables.ts',
    ),
  ]
}

const parametersMax = 4

/** The tokens between the commas outside every bracket. */
const splitAtCommas = (tokens: readonly Token[]): Token[][] => {
  const parts: Token[][] = [[]]
  let depth = 0
  for (const token of tokens) {
    if (token.kind === 'punct' && '([{'.includes(token.text)) depth++
    if (token.kind === 'punct' && ')]}'.includes(token.text)) depth--
    if (token.text === ',' && depth === 0) parts.push([])
    else parts.at(-1)?.push(token)
  }
  return parts.filter((part) => part.length > 0)
}

/** Positional booleans among the written parameters from `open` to `close`; the subject of `asserts` is a value. */
const booleanParameters = ({ written }: Source, open: number, close: number): Token[] => {
  const after = written.tokens.findIndex(({ index }) => index > close)
  const [colon, word, subject] = written.tokens.slice(after, after + 3)
  const asserted = colon?.text === ':' && word?.text === 'asserts' ? subject?.text : undefined
  let depth = 0
  return written.tokens
    .filter(({ index }) => index > open && index < close)
    .filter((token, at, inside) => {
      if (token.kind === 'punct' && '([{<'.includes(token.text)) depth++
      if (token.kind === 'punct' && ')]}>'.includes(token.text)) depth--
      const next = inside.slice(at + 1, at + 4).map(({ text }) => text)
      const isBoolean = /^(: boolean|\? : boolean|= true|= false)( |$)/.test(next.join(' '))
      return depth === 0 && token.kind === 'word' && isBoolean && token.text !== asserted
    })
}

/** `f(a, true, false)` says nothing at the call: a boolean is a named option, and many parameters are one object. */
const parameters: Rule = (file) => {
  if (!isOurs(file.path)) return []
  const lists = (tokens: Token[]) =>
    callables(tokens)
      .map(({ params }) => params)
      .filter((params) => params[0]?.text === '(')
  const long = lists(file.running.tokens)
    .map((params) => ({ line: params[0]?.line ?? 1, count: splitAtCommas(params.slice(1, -1)).length }))
    .filter(({ count }) => count > parametersMax)
    .map(({ line, count }) => ({
      line,
      says: `${count} parameters, at most ${parametersMax}; hand over an object`,
    }))
  // Stripping removes a type of a function; a function with a return type is found in the running code only.
  const booleans = [...lists(file.running.tokens), ...lists(file.written.tokens)].flatMap((params) =>
    booleanParameters(file, params[0]?.index ?? 0, params.at(-1)?.index ?? 0),
  )
  const lines = new Map(booleans.map(({ text, line }) => [`${line} ${text}`, { line, text }]))
  return [
    ...long,
    ...[...lines.values()].map(({ line, text }) => ({
      line,
      says: `the boolean parameter ${text} has no name at the call; make it an option`,
    })),
  ]
}

/**
 * A factory is a verb, `create`, or `open` where its product has to be closed. Found are functions that have the name of
 * their file and take dependencies alone; a noun of another name passes, and steps of a task keep theirs.
 */
const factories: Rule = (file) => {
  if (!inSrc(file) || isTest(file)) return []
  const noun = posix
    .basename(file.path, '.ts')
    .replace(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase())
  if (/^(create|open)[A-Z]|Steps$/.test(noun)) return []
  const { tokens } = file.written
  return tokens.flatMap(({ text, line }, at) => {
    if (text !== noun || !/^(function|const)$/.test(tokens[at - 1]?.text ?? '')) return []
    const open = tokens.findIndex((token, after) => after > at && /^[({[]$/.test(token.text))
    const given = tokens.slice(open + 1, closingIndex(tokens, open))
    if (tokens[open]?.text !== '(') return []
    const isExported = tokens.slice(Math.max(0, at - 3), at).some((token) => token.text === 'export')
    const takesDeps = given.some((token) => token.kind === 'word' && /(Deps|Options)$/.test(token.text))
    if (!isExported || !takesDeps || splitAtCommas(given).length > 1) return []
    return [{ line, says: `${noun} is a noun; name the factory createX, or openX where it is closed` }]
  })
}

/** Files that import a module which waits share its wait, and then declare their tests in one suite. */
const noTopLevelAwait: Rule = (file) =>
  file.path.startsWith('test/') && !tables.testProcesses.includes(file.path)
    ? findMatches(
        file.running.code,
        /^(?:(?:export )?(?:const|let) [^=\n]+= )?await /gm,
        'an await outside of functions; tests import this module',
      )
    : []

export const rules: Record<string, Rule> = {
  runs,
  names,
  forbiddenNames,
  size,
  noPacking,
  noAny,
  noDoubleCast,
  noDefaultExport,
  typeNotInterface,
  classesOnlyForErrors,
  environment,
  noSleep,
  honestTests,
  comments,
  commentSubjects,
  custody,
  wiring,
  receipt,
  shortage,
  poolInAct,
  floats,
  parameters,
  factories,
  noTopLevelAwait,
}

export const ruleFindings = (file: Source): Finding[] =>
  Object.entries(rules).flatMap(([rule, find]) =>
    find(file).map((found) => ({ rule, path: file.path, ...found })),
  )
