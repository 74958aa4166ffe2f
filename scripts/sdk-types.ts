/** The published types of the SDK, written from the schemas of the contracts: no package of types has to be installed. */
import { contracts } from '../src/contracts.ts'
import { type Entry, operationName, type StreamEntry, takesWait } from '../src/kernel/contract/operation.ts'
import { isRecord } from '../src/kernel/wire/json.ts'
import { type OperationRow, operations } from '../src/sdk/operations.ts'

type Schema = Record<string, unknown>
type Named = Map<string, { schema: Schema; text: string }>

const primitives: Record<string, string> = {
  string: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  null: 'null',
}

const docOf = (text: unknown): string =>
  typeof text === 'string' ? `/** ${text.replaceAll('*/', '* /')} */\n` : ''

const arms = (schemas: unknown, named: Named, by: string): string =>
  (schemas as Schema[]).map((each) => `(${typeOf(each, named)})`).join(by)

/** The type of a schema; one with a name is written once. */
function typeOf(schema: Schema, named: Named): string {
  const { $id: id } = schema
  if (typeof id !== 'string') return bodyOf(schema, named)
  const known = named.get(id)
  if (known && JSON.stringify(known.schema) !== JSON.stringify(schema)) return bodyOf(schema, named)
  if (!known) {
    const entry = { schema, text: '' }
    named.set(id, entry)
    entry.text = `${docOf(schema.description)}export type ${id} = ${bodyOf(schema, named)}`
  }
  return id
}

function bodyOf(schema: Schema, named: Named): string {
  const { type, enum: values, items } = schema
  if (schema['x-decimal'] !== undefined) return 'string'
  if (Array.isArray(values)) return values.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.anyOf ?? schema.oneOf) return arms(schema.anyOf ?? schema.oneOf, named, ' | ')
  if (schema.allOf) return arms(schema.allOf, named, ' & ')
  if (Array.isArray(type)) return [...new Set(type.map((each) => primitives[each] ?? 'unknown'))].join(' | ')
  if (type === 'array') {
    if (Array.isArray(items)) return `[${items.map((each: Schema) => typeOf(each, named)).join(', ')}]`
    return isRecord(items) ? `(${typeOf(items, named)})[]` : 'unknown[]'
  }
  return type === 'object' ? objectOf(schema, named) : (primitives[String(type)] ?? 'unknown')
}

function objectOf(
  { properties, required, patternProperties, additionalProperties }: Schema,
  named: Named,
): string {
  const [pattern] = isRecord(patternProperties) ? Object.values(patternProperties) : []
  if (isRecord(pattern)) return `{ [name: string]: ${typeOf(pattern, named)} }`
  const needed = Array.isArray(required) ? required : []
  const fields = Object.entries(isRecord(properties) ? properties : {}).map(([name, field]) => {
    const { description } = field as Schema
    const mark = needed.includes(name) ? '' : '?'
    return `${docOf(description)}${JSON.stringify(name)}${mark}: ${typeOf(field as Schema, named)}`
  })
  if (additionalProperties === true) fields.push('[field: string]: unknown')
  return `{\n${fields.join('\n')}\n}`
}

const waitFields = {
  type: 'object',
  properties: {
    wait: { type: 'boolean', description: 'Block until the task has ended' },
    timeout: { type: 'integer', description: 'Seconds to block for, from 5 to 90' },
  },
}

/** The parameters of a method: the input is optional where each of its fields is. */
function parametersOf(entry: Entry, options: string, named: Named): string {
  const parts = [entry.params, entry.query, entry.body].filter((part) => part !== undefined) as unknown[]
  if (takesWait(entry)) parts.push(waitFields)
  const schemas = parts as Schema[]
  // The client adds what its key signs.
  const isField = (name: string) =>
    schemas.some(({ properties }) => isRecord(properties) && name in properties)
  const added =
    entry.kind === 'act' && entry.isSigned ? ['agent_id', 'timestamp', 'signature'].filter(isField) : []
  const isOptional = schemas.every(
    ({ required }) => !Array.isArray(required) || required.every((name) => added.includes(name)),
  )
  const whole = schemas.map((schema) => typeOf(schema, named)).join(' & ') || 'Record<string, never>'
  const addedText = added.map((name) => `'${name}'`).join(' | ')
  const input = addedText ? `Omit<${whole}, ${addedText}> & Partial<Pick<${whole}, ${addedText}>>` : whole
  return `input${isOptional ? '?' : ''}: ${input}, options?: ${options}`
}

function answerOf(entry: Exclude<Entry, { kind: 'stream' }>, { list }: OperationRow, named: Named): string {
  const output = typeOf(entry.output as unknown as Schema, named)
  if (takesWait(entry)) {
    const result = entry.result ? typeOf(entry.result as unknown as Schema, named) : 'Record<string, unknown>'
    return `Call<Omit<${output}, 'result'> & { result?: ${result} | null }>`
  }
  if (!list) return `Call<${output}>`
  return `ListCall<${output}, ${output}${'items' in list ? `['${list.items}']` : ''}[number]>`
}

function eventOf({ event, events }: StreamEntry, named: Named): string {
  const schemaOf = (schema: unknown) => typeOf(schema as Schema, named)
  if (!events) return `StreamEvent<${schemaOf(event)}>`
  return Object.entries(events)
    .map(([name, data]) => `{ id: string; event: '${name}'; data: ${schemaOf(data)} }`)
    .join(' | ')
}

function methodOf(row: OperationRow, entry: Entry, named: Named): string {
  const doc = docOf(`${entry.summary}.\n\n${entry.description ?? ''}`)
  if (entry.kind === 'stream') {
    return `${doc}${row.key}: (${parametersOf(entry, 'FollowOptions', named)}) => AsyncGenerator<${eventOf(entry, named)}>`
  }
  return `${doc}${row.key}: (${parametersOf(entry, 'CallOptions', named)}) => ${answerOf(entry, row, named)}`
}

/** The text of `api.ts`. */
export function apiTypes(): string {
  const named: Named = new Map()
  const entries = new Map(
    contracts.flatMap(({ group, entries }) =>
      Object.entries(entries).map(([key, entry]): [string, Entry] => [operationName(group, key), entry]),
    ),
  )
  const sections = Object.entries(Object.groupBy(operations, ({ group }) => group)).map(
    ([group, rows = []]) =>
      `${group}: {\n${rows.map((row) => methodOf(row, entries.get(row.name)!, named)).join('\n')}\n}`,
  )
  return [
    "import type { Call, ListCall } from './call.ts'",
    "import type { FollowOptions, StreamEvent } from './event-stream.ts'",
    "import type { CallOptions } from './transport.ts'",
    ...[...named.values()].map(({ text }) => text),
    `/** \`client.<section>.<operation>(input, options)\` */\nexport type Api = {\n${sections.join('\n')}\n}`,
  ].join('\n\n')
}
