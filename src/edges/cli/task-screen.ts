import { type Fields, isObject, listText, plainText, printable } from './cell-text.ts'
import { commands } from './commands.ts'
import { inFlags } from './flag-language.ts'
import { answerScreen, type Fact, factLines, factsOf, type Layout } from './screen.ts'
import { widthOf } from './table-text.ts'
import type { View } from './view.ts'

/** Prints a task as its owner asks about it: what it was, what became of it, and what moved. */

const views = new Map(commands.map(({ taskKind, result }) => [taskKind, result]))
/** Tasks that no operation makes, such as the swap of a limit order, have results with fields of the same names. */
const anyResult: View = {
  kinds: Object.fromEntries(commands.flatMap(({ result }) => Object.entries(result?.kinds ?? {}))),
}
const taskView = commands.find(({ name }) => name === 'tasks_get')?.view

export const isTask = (answer: unknown): answer is Fields =>
  isObject(answer) && 'task_id' in answer && 'status' in answer && 'poll_url' in answer

const words = (value: unknown): string => printable(value).replaceAll('_', ' ')

/** What a task moved: `-20 USDC, +0.0053 ETH`, or its fills; empty if nothing moved. */
export function movedText(task: Fields, chains: Layout['chains'] = new Map()): string {
  return ['balance_changes', 'fills']
    .map((name) => listText(listOf(task[name]), taskView?.parts?.[name], { row: task, chains }))
    .filter((text) => text !== '')
    .join(', ')
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export function statusText({ status, outcome, progress }: Fields): string {
  const steps = isObject(progress)
    ? `step ${progress.step} of ${progress.of}: ${words(progress.text)}`
    : undefined
  const isOver = outcome !== null && outcome !== undefined
  return [words(status), isOver ? words(outcome) : steps].filter((part) => part !== undefined).join(', ')
}

export function taskScreen(task: Fields, layout: Layout): string[] {
  const lines = factLines(factsOfTask(task, layout), layout.width)
  if (task.dryrun !== true) return lines
  // What a dry run answers in place of a task, such as a quote.
  const beside = Object.entries(layout.view?.parts ?? {}).filter(
    ([name]) => !(name in (taskView?.parts ?? {})),
  )
  const parts = Object.fromEntries(beside)
  const answer = Object.fromEntries(beside.map(([name]) => [name, task[name]]))
  const more = answerScreen(answer, { ...layout, view: { parts } })
  return more.length === 0 ? lines : [...lines, '', ...more]
}

function factsOfTask(task: Fields, { chains, width }: Layout): Fact[] {
  const { kind, message, error, approval, task_id, completed_at, created_at } = task
  const facts: (Fact | undefined)[] = [
    kind === undefined ? undefined : ['what', words(kind)],
    ['status', statusText(task)],
    (isOver(task) && task.dryrun !== true) || typeof message !== 'string'
      ? undefined
      : ['', inFlags(message)],
    isObject(error) ? ['error', inFlags(`${words(error.code)}: ${printable(error.message)}`)] : undefined,
    ...changes(task, chains),
    ...(isObject(task.result) ? resultFacts(task.result, views.get(String(kind)) ?? anyResult, chains) : []),
    ...transactions(task, { chains, width }),
    ...(isObject(approval) ? factsOf(approval, taskView?.parts?.approval, chains) : []),
    ['task', typeof task_id === 'string' ? printable(task_id) : ''],
    ['at', whenText(created_at, completed_at)],
    isOver(task) ? undefined : ['next', `portico tasks get ${printable(task_id)}`],
  ]
  return facts.filter((fact): fact is Fact => fact !== undefined && fact[1] !== '')
}

const isOver = ({ status }: Fields): boolean => ['completed', 'failed', 'cancelled'].includes(String(status))

function whenText(from: unknown, to: unknown): string {
  if (typeof from !== 'string') return ''
  const text = plainText({ value: from, kind: 'time', row: {}, chains: new Map() }) ?? ''
  const ms = typeof to === 'string' ? Date.parse(to) - Date.parse(from) : Number.NaN
  return ms >= 0 ? `${text}, took ${(ms / 1_000).toFixed(1)} s` : text
}

const changes = (task: Fields, chains: Layout['chains']): Fact[] =>
  ['balance_changes', 'fills'].flatMap((name) =>
    listOf(task[name])
      .filter(isObject)
      .map((change, at): Fact => {
        const text = listText([change], taskView?.parts?.[name], { row: task, chains })
        const place =
          typeof change.chain_id === 'string'
            ? ` on ${printable(chains.get(change.chain_id) ?? change.chain_id)}`
            : ''
        return [at === 0 ? (name === 'fills' ? 'filled' : 'moved') : '', `${text}${place}`]
      }),
  )

const hashPlaces = 12

/** The hash is whole where the line has room for it. */
const transactions = (task: Fields, { chains, width }: Pick<Layout, 'chains' | 'width'>): Fact[] =>
  listOf(task.transactions)
    .filter(isObject)
    .map(({ tx_hash, chain_id, status }, at): Fact => {
      const hash = printable(tx_hash)
      const rest = ` on ${printable(chains.get(String(chain_id)) ?? chain_id)}, ${words(status)}`
      const hasRoom = widthOf(hash) + widthOf(rest) + labelPlaces <= width
      const shown = hasRoom ? hash : `${hash.slice(0, hashPlaces)}…${hash.slice(-hashPlaces)}`
      return [at === 0 ? 'transaction' : '', `${shown}${rest}`]
    })
const labelPlaces = 24

/** What the result says beyond the transactions and the changes, which are printed from the record of the task. */
function resultFacts(result: Fields, view: View | undefined, chains: Layout['chains']): Fact[] {
  const names =
    view?.columns ??
    Object.keys(result).filter((name) => !/(?:^|_)(?:tx_hash(?:es)?|explorer_url)$/.test(name))
  return names.flatMap((name): Fact[] => {
    const value = result[name]
    const part = view?.parts?.[name]
    if (Array.isArray(value) && value.every(isObject)) {
      const text = listText(value, part, { row: result, chains })
      return text === '' ? [] : [[name.replaceAll('_', ' '), text]]
    }
    if (isObject(value)) return resultFacts(value, part, chains)
    return factsOf({ ...result, [name]: value }, { ...view, columns: [name] }, chains)
  })
}
