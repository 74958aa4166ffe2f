import { plainSchema } from '#kernel/contract/decimal-fields.ts'
import { type Contract, type Entry, operationName } from '#kernel/contract/operation.ts'
import type { TObject } from '#kernel/contract/schema.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { createNames, type Names, type Universe } from './asset-and-chain-names.ts'
import { concepts } from './english/lexicon.ts'
import { nicknames } from './english/word-lists.ts'
import { frames } from './frames.ts'
import type { PlanStep } from './intent-frame.ts'
import { createVocabulary, type Vocabulary } from './vocabulary.ts'

/** The registry has what the grammar needs of the product: its operations, its chains and its assets. */
export type GrammarOperation = {
  kind: Entry['kind']
  fields: ReadonlySet<string>
  required: ReadonlySet<string>
}
export type Registry = {
  names: Names
  vocabulary: Vocabulary
  operations: ReadonlyMap<string, GrammarOperation>
}

function fieldsOf(entry: Entry): { fields: Set<string>; required: Set<string> } {
  const fields = new Set<string>()
  const required = new Set<string>()
  const parts = [entry.params, entry.query, entry.body].filter((part): part is TObject => part !== undefined)
  for (const part of parts) {
    const { properties, required: names } = plainSchema(part)
    if (isRecord(properties)) for (const name of Object.keys(properties)) fields.add(name)
    if (Array.isArray(names)) for (const name of names) required.add(String(name))
  }
  return { fields, required }
}

/** The reads of market data that a turn has beside the operations of the contracts, with their fields. */
export const innerReads: Readonly<Record<string, readonly string[]>> = {
  market_candles: ['asset', 'timeframe', 'count'],
  market_funding: ['asset', 'days'],
  market_book: ['asset'],
}

export function operationsOf(contracts: readonly Contract[]): Map<string, GrammarOperation> {
  const inner = Object.entries(innerReads).map(([name, fields]): [string, GrammarOperation] => [
    name,
    { kind: 'read', fields: new Set(fields), required: new Set(fields) },
  ])
  return new Map([
    ...inner,
    ...contracts.flatMap(({ group, entries }) =>
      Object.entries(entries).map(([key, entry]): [string, GrammarOperation] => [
        operationName(group, key),
        { kind: entry.kind, ...fieldsOf(entry) },
      ]),
    ),
  ])
}

const stepMistakes = (
  { operation, input }: PlanStep,
  operations: ReadonlyMap<string, GrammarOperation>,
): string[] => {
  const found = operations.get(operation)
  if (!found) return [`there is no operation ${operation}`]
  return [
    ...Object.keys(input)
      .filter((field) => !found.fields.has(field))
      .map((field) => `${operation} has no field ${field}`),
    ...[...found.required].filter((field) => !(field in input)).map((field) => `${operation} needs ${field}`),
  ]
}

/** Returns one sentence for each step of a plan that the contracts do not allow. */
export const planMistakes = (operations: ReadonlyMap<string, GrammarOperation>): string[] =>
  frames.flatMap(({ intent, plan }) =>
    (plan ?? []).flatMap((step) =>
      stepMistakes(step, operations).map((mistake) => `${intent}, step ${step.id}: ${mistake}`),
    ),
  )

/** Returns one sentence for each rule that names a concept which the lexicon does not define. */
const ruleMistakes = (): string[] =>
  frames.flatMap(({ intent, when, not = [], head = [], cues = {} }) =>
    [...when.flat(2), ...not.flat(), ...head, ...Object.keys(cues)]
      .map((name) => name.replace('^', ''))
      .filter((name) => !name.startsWith('@') && !Object.hasOwn(concepts, name))
      .map((name) => `${intent}: there is no concept ${name}`),
  )

/**
 * Creates the registry. Throws if a frame names an unknown operation, field or concept, because otherwise only a
 * conversation would reveal the mistake.
 */
export function createRegistry(contracts: readonly Contract[], universe: Universe): Registry {
  const operations = operationsOf(contracts)
  const mistakes = [...planMistakes(operations), ...ruleMistakes()]
  if (mistakes.length > 0)
    throw new Error(`the grammar does not fit the contracts and the lexicon:\n${mistakes.join('\n')}`)
  const names = createNames(universe, nicknames)
  return { names, vocabulary: createVocabulary(names), operations }
}

/** Whether a step changes something: it is neither a read nor a dry run. */
export const changes = (
  { operation, input }: PlanStep,
  { operations }: Pick<Registry, 'operations'>,
): boolean => {
  const dryrun = input.dryrun
  const isDryRun = dryrun !== undefined && 'value' in dryrun && dryrun.value === true
  return operations.get(operation)?.kind !== 'read' && !isDryRun
}
