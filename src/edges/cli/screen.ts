import {
  type Cell,
  type ChainNames,
  type Fields,
  isObject,
  isPlain,
  listText,
  plainText,
} from './cell-text.ts'
import { type Column, tableText, widthOf, wrapped } from './table-text.ts'
import type { Kind, View } from './view.ts'

/** Prints an answer for a person: chosen columns, whole units, and no line longer than the screen. */

export type Layout = {
  view?: View | undefined
  /** The width of the screen; infinite if the output goes elsewhere. */
  width: number
  chains: ChainNames
}
export type Fact = readonly [name: string, text: string]

/** More entries of an object without a schema, such as prices by market, are counted and not printed. */
const openEntriesMax = 20
const columnsMax = 7

const labelOf = (name: string): string =>
  name.replace(/_usd(?=_|$)|_decimal$|_bps$|(?<=\w)_at$|(?<=^chain)_(?:id|name)$/g, '').replaceAll('_', ' ')
const isList = (value: unknown): value is readonly Fields[] =>
  Array.isArray(value) && value.length > 0 && value.every(isObject)

export function answerScreen(answer: unknown, layout: Layout): string[] {
  if (Array.isArray(answer)) return listLines(answer, layout)
  if (!isObject(answer))
    return wrapped(plainText({ value: answer, row: {}, chains: layout.chains }) ?? '-', layout.width)
  const first = chosenOf(answer, layout.view)[0]?.[1]
  const isListAnswer = Array.isArray(first) && (first.length === 0 || isObject(first[0]))
  return isListAnswer ? listAnswer(answer, layout) : objectLines(answer, layout)
}

/** Prints the lists first, and then in one line what the answer says about them. */
function listAnswer(answer: Fields, layout: Layout): string[] {
  const { view, chains } = layout
  const blocks = listBlocks(answer, layout)
  const facts = factsOf(answer, view, chains).filter(([name]) => name !== 'skip' && name !== 'limit')
  const about = facts.map(([name, text]) => `${name} ${text}`).join(', ')
  const isEmpty = blocks.length === 0
  return [
    ...(isEmpty ? [`no ${labelOf(chosenOf(answer, view)[0]?.[0] ?? 'entries')}`] : joined(blocks)),
    ...(about === '' || isEmpty ? [] : ['', ...wrapped(about, layout.width)]),
    ...partBlocks(answer, layout).flatMap((block) => ['', ...block]),
  ]
}

function objectLines(answer: Fields, layout: Layout): string[] {
  const facts = factsOf(answer, layout.view, layout.chains)
  const blocks = [...partBlocks(answer, layout), ...listBlocks(answer, { ...layout, isTitled: true })]
  return joined([...(facts.length > 0 ? [factLines(facts, layout.width)] : []), ...blocks])
}

const joined = (blocks: readonly string[][]): string[] =>
  blocks.flatMap((block, at) => (at === 0 ? block : ['', ...block]))

function listBlocks(
  answer: Fields,
  { isTitled = false, ...layout }: Layout & { isTitled?: boolean },
): string[][] {
  const lists = chosenOf(answer, layout.view).flatMap(([name, value]) => {
    const view = layout.view?.parts?.[name]
    return isList(value) && view?.columns?.length !== 0
      ? [{ name, lines: listLines(value, { ...layout, view }) }]
      : []
  })
  return lists.map(({ name, lines }) =>
    isTitled || lists.length > 1 ? [`${labelOf(name)}:`, ...lines] : lines,
  )
}

function partBlocks(answer: Fields, layout: Layout): string[][] {
  return chosenOf(answer, layout.view).flatMap(([name, value]) => {
    if (!isObject(value)) return []
    const view = layout.view?.parts?.[name]
    const count = Object.keys(value).length
    if (view === undefined && count > openEntriesMax) return [[`${labelOf(name)}: ${count} entries (--wide)`]]
    const lines = objectLines(value, { ...layout, view, width: layout.width - 2 })
    return lines.length === 0
      ? []
      : [[`${labelOf(name)}:`, ...lines.map((line) => (line === '' ? '' : `  ${line}`))]]
  })
}

/** The fields that the contract has chosen, or all of them; a number that is repeated as exact text is left out. */
const chosenOf = (answer: Fields, view: View | undefined): [name: string, value: unknown][] =>
  view?.columns
    ? view.columns.map((name) => [name, answer[name]])
    : Object.entries(answer).filter(([name]) => !(`${name}_decimal` in answer))

/** The plain fields of an object that have a value, with their texts. */
export function factsOf(answer: Fields, view: View | undefined, chains: ChainNames): Fact[] {
  return chosenOf(answer, view).flatMap(([name, value]) => {
    if (!isPlain(value) && !(Array.isArray(value) && value.every(isPlain))) return []
    const cell = { name, kind: view?.kinds?.[name], row: answer, chains }
    const text = Array.isArray(value) ? listText(value, undefined, cell) : plainText({ ...cell, value })
    return text === undefined || text === '' ? [] : [[labelOf(name), text] as const]
  })
}

export function factLines(facts: readonly Fact[], width: number): string[] {
  const left = Math.max(0, ...facts.map(([name]) => widthOf(name)))
  return facts.flatMap(([name, text]) => {
    const lines = wrapped(text, Math.max(1, width - left - 2))
    return lines.map((line, at) => `${(at === 0 ? name : '').padEnd(left)}  ${line}`.trimEnd())
  })
}

export function listLines(list: readonly unknown[], layout: Layout): string[] {
  if (list.length === 0) return ['none']
  const { view, width, chains } = layout
  if (!isList(list))
    return list.flatMap((value) => wrapped(plainText({ value, row: {}, chains }) ?? '-', width))
  const { lines, leftOut } = tableText(columnsOf(list, view, chains), width)
  const note = `without ${leftOut.join(', ').toLowerCase()}: --wide`
  return [...lines, ...(leftOut.length === 0 ? [] : wrapped(note, width)), ...listsOfOne(list, layout)]
}

/** A row that stands alone is followed by its lists of things with an id, such as the outcomes of a market. */
function listsOfOne(rows: readonly Fields[], layout: Layout): string[] {
  const [row] = rows
  if (!row || rows.length > 1) return []
  return Object.entries(layout.view?.parts ?? {}).flatMap(([name, view]) => {
    const list = row[name]
    const hasIds = view.kinds?.[view.columns?.[0] ?? ''] === 'id'
    return hasIds && isList(list) ? ['', `${labelOf(name)}:`, ...listLines(list, { ...layout, view })] : []
  })
}

function columnsOf(rows: readonly Fields[], view: View | undefined, chains: ChainNames): Column[] {
  const names = view?.columns ?? Object.keys(rows[0] ?? {}).slice(0, columnsMax)
  return names.flatMap((alternatives, at) => {
    const [name = '', ...others] = alternatives.split('|')
    const cells = rows.map((row) => {
      const shown = [name, ...others].map((each) => cellAt(row, each, view, chains))
      return shown.find(({ text }) => text !== '') ?? shown[0]!
    })
    if (cells.every(({ text }) => text === '')) return []
    const kind = cells.find(({ kind }) => kind !== undefined)?.kind
    return [
      {
        header: labelOf(name.split('.').at(-1) ?? name).toUpperCase(),
        cells: cells.map(({ text }) => text || '-'),
        isNumber:
          isNumberKind(kind) ||
          cells.every(({ value }) => (value ?? undefined) === undefined || typeof value === 'number'),
        mayBeCut: kind === undefined,
        isIdentity: at === 0 && kind === 'id',
      },
    ]
  })
}

const numberKinds: readonly (Kind | undefined)[] = ['usd', 'decimal', 'fraction', 'bps', 'units', 'change']
const isNumberKind = (kind: Kind | undefined): boolean => numberKinds.includes(kind)

type Shown = Pick<Cell, 'value' | 'kind'> & { text: string }

/** `path` is the name of a field, or of a field within an object of the row. */
function cellAt(row: Fields, path: string, view: View | undefined, chains: ChainNames): Shown {
  const [name = '', ...rest] = path.split('.')
  const value = row[name]
  if (rest.length > 0)
    return isObject(value) ? cellAt(value, rest.join('.'), view?.parts?.[name], chains) : { value, text: '' }
  const kind = view?.kinds?.[name]
  const text = Array.isArray(value)
    ? listText(value, view?.parts?.[name], { kind, row, chains })
    : isPlain(value)
      ? (plainText({ value, name, kind, row, chains }) ?? '')
      : ''
  return { value, kind, text }
}
