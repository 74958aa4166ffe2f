import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { readDecimals, type Schema } from '#kernel/contract/decimal-fields.ts'
import { Fault, type InputLocation, type Issue } from '#kernel/contract/fault.ts'
import { type Entry, isKeyed, type Operation, waitQuery } from '#kernel/contract/operation.ts'
import { isRecord, type NumberSources } from '#kernel/wire/json.ts'
import { assertDistinctNames, inputLocations, namesIn } from './input-location.ts'
import { addRoundedIntegers } from './integer-precision.ts'
import { filterBySchema } from './schema-filter.ts'
import { checkStorable } from './storable-text.ts'
import { unknownFields } from './unknown-field.ts'
import { addSchemaErrors, type IssueList, issueList, type UnknownField } from './validation-issues.ts'

/** An input by location, each value already parsed from its text. */
export type LocatedInput = {
  path: Record<string, unknown>
  query: Record<string, unknown>
  body: unknown
  /** Where errors locate the fields of the body: `query` if these fields were sent as a query. */
  bodyLocation?: 'body' | 'query'
  idempotencyKey?: string | undefined
}
export type ParsedInput = {
  input: Record<string, unknown>
  wait: boolean
  timeoutMs: number
  key?: string
}
/** Validates a located input and returns its operation's input, or throws a 422; the given objects may change. */
export type ReadInput = (located: LocatedInput) => ParsedInput
/** Validates one flat record, of which each field first goes to the location that the contract declares. */
export type ReadFlatInput = (flat: Record<string, unknown>) => ParsedInput
export type InputReaders = { readInput: ReadInput; readFlatInput: ReadFlatInput }

/** Only the caller's credential sets these fields. Clients may send them, but they are ignored. */
const identityFields = ['agent_id', 'application_id', 'user_id']
const visibleAscii = /^[\x21-\x7e]{1,255}$/

type Compile = (schema: Schema) => ValidateFunction

/**
 * All operations share one validator, because an instance costs as much as hundreds of requests. It is created for the
 * first request, so that it does not delay the start.
 */
export function inputReaders(sources: NumberSources): (operation: Pick<Operation, 'entry'>) => InputReaders {
  let ajv: Ajv2020 | undefined
  const compile: Compile = (schema) => {
    ajv ??= createValidator()
    return ajv.compile(schema)
  }
  return ({ entry }) => {
    const readInput = inputReader(entry, compile, sources)
    const locate = flatInputLocator(entry, sources)
    return { readInput, readFlatInput: (flat) => readInput(locate(flat)) }
  }
}

function createValidator(): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    useDefaults: true,
    strict: false,
    ownProperties: true,
    // An error carries its value and schema, from which its message is built.
    verbose: true,
  })
  formats.default(ajv)
  return ajv
}

type Part = { schema: Schema; check: () => ValidateFunction; unknownField: UnknownField }

const asSchema = (schema: unknown): Schema => schema as Schema

function inputReader(entry: Entry, compile: Compile, sources: NumberSources): ReadInput {
  const keyed = isKeyed(entry)
  const { params, body: bodySchema } = entry
  const querySchema = withWait(entry)
  const unknownField = unknownFields({ params, query: querySchema, body: bodySchema, isKeyed: keyed })
  const part = (schema: unknown, { isStrict = false }: { isStrict?: boolean } = {}): Part | undefined => {
    if (schema === undefined) return undefined
    // A schema is compiled on the first request: compiling for all operations took a twentieth of the startup time.
    let compiled: ValidateFunction | undefined
    const check = () => {
      compiled ??= compile(ajvSchema(asSchema(schema), { isStrict }))
      return compiled
    }
    return { schema: asSchema(schema), check, unknownField }
  }
  const path = part(params)
  const query = part(querySchema)
  const body = part(bodySchema, { isStrict: entry.kind === 'task' })
  const queryNames = Object.keys(record(querySchema?.properties))
  const isOpaque = body !== undefined && isWhollyOpen(body.schema)

  return ({ path: givenPath, query: givenQuery, body: given, bodyLocation = 'body', idempotencyKey }) => {
    const issues = issueList()
    const inPath = path ? readFields(path, givenPath, { location: 'path', sources, issues }) : {}
    dropIdentity(givenQuery, querySchema)
    addUnknown(issues, givenQuery, queryNames, unknownField)
    const inQuery = query ? readFields(query, givenQuery, { location: 'query', sources, issues }) : {}
    const key = keyed ? readKey(idempotencyKey, given, issues) : undefined
    if (isRecord(given) && !isOpaque) {
      if (keyed) delete given.idempotency_key
      dropIdentity(given, body?.schema)
    }
    const inBody = body ? readBody(body, given, entry, { location: bodyLocation, sources, issues }) : {}
    if (issues.items.length > 0)
      throw new Fault('validation', 'The request is not valid', { issues: issues.items })
    const { wait = false, timeout = 0, ...rest } = entry.kind === 'task' ? inQuery : { ...inQuery }
    return {
      input: { ...inBody, ...(entry.kind === 'task' ? rest : inQuery), ...inPath },
      wait: wait === true,
      timeoutMs: Number(timeout) * 1_000,
      ...(key !== undefined && { key }),
    }
  }
}

export function withWait(entry: Entry): Schema | undefined {
  const own = entry.query && asSchema(entry.query)
  if (entry.kind !== 'task' || entry.isAnswered) return own
  const wait = asSchema(waitQuery(entry.waitSeconds))
  return { ...own, ...wait, properties: { ...record(own?.properties), ...record(wait.properties) } }
}

const record = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {})

type Reading = { location: InputLocation; sources: NumberSources | undefined; issues: IssueList }

function readFields(
  part: Part,
  given: Record<string, unknown>,
  reading: Reading & { sources: NumberSources },
): Record<string, unknown> {
  // Only numbers that were parsed from JSON have a source text.
  const sources = reading.sources.has(given) ? reading.sources : undefined
  return record(checked(part, given, { ...reading, sources }))
}

/** Splits a flat record by declared location. An unknown field joins the body, or the query if there is no body. */
function flatInputLocator(entry: Entry, sources: NumberSources) {
  const { params, body } = entry
  const query = withWait(entry)
  const keyed = isKeyed(entry)
  const key = new Set(keyed ? ['idempotency_key'] : [])
  assertDistinctNames(
    { path: namesIn(params), query: namesIn(query), body: namesIn(body), 'idempotency key': key },
    entry.route,
  )
  const locationOf = inputLocations({ params, query, body })
  return (flat: Record<string, unknown>): LocatedInput => {
    // The groups have no prototype, so that no field name can reach one.
    const groups = { path: Object.create(null), query: Object.create(null), body: Object.create(null) }
    for (const [name, value] of Object.entries(flat)) {
      const location = keyed && name === 'idempotency_key' ? 'body' : locationOf(name)
      groups[location][name] = value
    }
    const numbers = sources.get(flat)
    if (numbers) for (const group of Object.values(groups)) sources.set(group, numbers)
    return groups
  }
}

/** Reports undeclared query parameters, because a misspelt one would be ignored silently. */
function addUnknown(
  issues: IssueList,
  sent: Record<string, unknown>,
  known: readonly string[],
  unknownField: UnknownField,
): void {
  for (const name of Object.keys(sent)) {
    if (issues.isFull()) return
    if (known.includes(name)) continue
    const msg = unknownField(name, known, { isTop: true })
    issues.add({ location: 'query', path: [name], msg, type: 'extra_forbidden' })
  }
}

/**
 * Returns a part of the input after its checks: whether it can be stored, then its schema, then its decimals. `sources`
 * finds the source text of a number by the parsed object that contains the number.
 */
function checked(
  { schema, check, unknownField }: Part,
  value: unknown,
  { location, sources, issues }: Reading,
): unknown {
  if (!checkStorable(location, schema, value, issues)) return undefined
  const validate = check()
  if (!validate(value))
    addSchemaErrors(issues, validate.errors ?? [], { location, root: value, unknownField })
  if (sources) addRoundedIntegers(issues, { location, schema, value, sources })
  const decimals = readDecimals(schema, value, sources)
  for (const issue of decimals.issues) issues.add({ ...issue, location })
  return decimals.value
}

function readBody(part: Part, given: unknown, entry: Entry, reading: Reading): Record<string, unknown> {
  const { issues } = reading
  if (given === undefined || given === null) {
    const defaults: Record<string, unknown> = {}
    const mayBeAbsent = given === undefined && isAllOptional(part.schema)
    if (entry.bodyOptional || mayBeAbsent || part.check()(given ?? null))
      return part.check()(defaults) ? defaults : {}
    issues.add({ location: 'body', path: [], msg: 'Field required: send a JSON body', type: 'missing' })
    return {}
  }
  const value = checked(part, given, reading)
  return issues.items.length > 0 ? {} : record(filterBySchema(part.schema, value))
}

export function isAllOptional(schema: Schema): boolean {
  const { type, required, properties } = schema
  const fields = record(properties)
  const isNeeded = (name: unknown) => record(fields[String(name)]).default === undefined
  return type === 'object' && !(Array.isArray(required) && required.some(isNeeded))
}

/** A body of which the contract declares no field belongs to the client and stays as it was sent. */
const isWhollyOpen = ({ additionalProperties, properties }: Schema): boolean =>
  additionalProperties === true && Object.keys(record(properties)).length === 0

function dropIdentity(fields: Record<string, unknown>, schema: Schema | undefined): void {
  for (const field of identityFields) if (!schema || !declares(schema, field)) delete fields[field]
}

function declares(schema: Schema, field: string): boolean {
  if (isRecord(schema.properties) && Object.hasOwn(schema.properties, field)) return true
  const arms = schema.anyOf ?? schema.oneOf ?? schema.allOf
  return Array.isArray(arms) && arms.some((arm) => isRecord(arm) && declares(arm, field))
}

/** Reads the idempotency key from its header or from the field of the body; if both have a key, they must agree. */
function readKey(header: string | undefined, body: unknown, issues: IssueList): string | undefined {
  const inBody = isRecord(body) ? body.idempotency_key : undefined
  if (header !== undefined && !visibleAscii.test(header)) issues.add(notVisible('header', 'Idempotency-Key'))
  if (inBody === undefined || inBody === null) return header
  if (typeof inBody !== 'string' || !visibleAscii.test(inBody))
    issues.add(notVisible('body', 'idempotency_key'))
  else if (header !== undefined && header !== inBody) {
    issues.add({
      location: 'body',
      path: ['idempotency_key'],
      msg: 'The key differs from the Idempotency-Key header; send one of them',
      type: 'value_error',
    })
  }
  return header ?? String(inBody)
}

const notVisible = (location: InputLocation, field: string): Issue => ({
  location,
  path: [field],
  msg: 'Input should be 1 to 255 visible ASCII characters without spaces',
  type: 'string_pattern_mismatch',
})

/** When strict, an undeclared field is an error. */
type Strictness = { isStrict: boolean }

/**
 * Returns the form of a schema that ajv checks. Names are dropped, because several operations may share a
 * schema. A decimal keeps only its types: its pattern and bounds are checked exactly, on its text. In a strict
 * schema an undeclared field is an error at any depth, because a misspelt stop price must not open a position
 * without a stop.
 */
function ajvSchema(schema: Schema, { isStrict }: Strictness): Schema {
  if (schema['x-decimal'] !== undefined) {
    return { type: schema.type, ...defaultOf(schema) }
  }
  const arm = onlyArmBesideNull(schema)
  if (arm) return { ...ajvSchema(arm, { isStrict }), ...defaultOf(schema), type: [arm.type, 'null'] }
  const form: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === '$id' || keyword.startsWith('~')) continue
    form[keyword] = nested(keyword, value, { isStrict: isStrict && keyword !== 'allOf' })
  }
  if ([schema.type].flat().includes('integer')) Object.assign(form, safeBounds(schema))
  const open = schema.additionalProperties !== undefined || schema.patternProperties !== undefined
  if (isStrict && isRecord(schema.properties) && !open) form.additionalProperties = false
  return form
}

const defaultOf = (schema: Schema) => (schema.default === undefined ? {} : { default: schema.default })

/** Ajv fills no defaults inside a union, so a nullable schema is written as one with two types. */
function onlyArmBesideNull(schema: Schema): Schema | undefined {
  const arms = Array.isArray(schema.anyOf) ? schema.anyOf.filter(isRecord) : []
  const others = arms.filter(({ type }) => type !== 'null')
  const [arm] = others
  const plain = arm && typeof arm.type === 'string' && arm.enum === undefined && arm.const === undefined
  return arms.length === 2 && others.length === 1 && plain && arm['x-decimal'] === undefined ? arm : undefined
}

/** Beyond these bounds a JSON integer has lost digits when it is parsed. */
function safeBounds(schema: Schema): Record<string, number> {
  return {
    ...(schema.minimum === undefined && { minimum: Number.MIN_SAFE_INTEGER }),
    ...(schema.maximum === undefined && { maximum: Number.MAX_SAFE_INTEGER }),
  }
}

const maps = new Set(['properties', 'patternProperties', '$defs', 'dependentSchemas'])
const singles = new Set([
  'items',
  'additionalProperties',
  'not',
  'contains',
  'propertyNames',
  'if',
  'then',
  'else',
])
const lists = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])

function nested(keyword: string, value: unknown, strictness: Strictness): unknown {
  if (maps.has(keyword) && isRecord(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        isRecord(item) ? ajvSchema(item, strictness) : item,
      ]),
    )
  }
  if (singles.has(keyword) && isRecord(value)) return ajvSchema(value, strictness)
  if (lists.has(keyword) && Array.isArray(value)) {
    return value.map((item) => (isRecord(item) ? ajvSchema(item, strictness) : item))
  }
  return value
}
