import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { decimalPattern } from '#kernel/money/money.ts'
import { isRecord } from '#kernel/wire/json.ts'

type Json = Record<string, unknown>
type Method = {
  operationId: string
  description?: string
  parameters?: { name: string; description?: string }[]
  requestBody?: { content: Record<string, { schema: Json; example?: unknown }> }
  responses: Record<string, Json>
}

const document = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as {
  info: { description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Method>>
  components: { schemas: Record<string, Json> }
}
const methods = Object.values(document.paths).flatMap((path) => Object.values(path))

/** Every field of the named schemas, nested ones included, as `Component.field`. */
function fieldsOf(path: string, schema: Json): { path: string; field: Json }[] {
  const properties = isRecord(schema.properties) ? Object.entries(schema.properties) : []
  const arms = ['anyOf', 'oneOf', 'allOf'].flatMap((keyword) => (schema[keyword] as Json[] | undefined) ?? [])
  const inner = isRecord(schema.items) ? [...arms, schema.items] : arms
  return [
    ...properties.flatMap(([name, field]) => [
      { path: `${path}.${name}`, field: field as Json },
      ...fieldsOf(`${path}.${name}`, field as Json),
    ]),
    ...inner.flatMap((arm) => fieldsOf(path, arm)),
  ]
}
const fields = Object.entries(document.components.schemas).flatMap(([name, schema]) => fieldsOf(name, schema))

test('the introduction covers authentication, tasks, waiting, keys, errors, events and units', () => {
  const titles = [...document.info.description.matchAll(/^## (.+)$/gm)].map(([, title]) => title)
  const wanted = ['Authentication', 'Tasks', 'Waiting', 'Idempotency', 'Errors', 'Events', 'Units']
  assert.deepEqual(titles, wanted)
  for (const { name, description } of document.tags) assert.doesNotMatch(description, /^Operations of/, name)
})

test('every operation says when to use it and what comes next', () => {
  for (const { operationId, description = '' } of methods) {
    assert.match(description, /^Use it /, operationId)
    assert.match(description, / Next: /, operationId)
  }
})

test('every operation that a description names exists', () => {
  const groups = new Set(methods.map(({ operationId }) => operationId.split('_')[0]))
  const known = new Set(methods.map(({ operationId }) => operationId))
  const kinds = new Set(['earn_deposit'])
  const fieldNames = new Set(fields.map(({ path }) => path.split('.').at(-1)))
  const texts = [document.info.description, ...methods.map(({ description = '' }) => description)]
  const named = texts.flatMap((text) => [...text.matchAll(/`([a-z]+_[a-z_]+)`/g)].map(([, name]) => name!))
  const operations = named.filter((name) => groups.has(name.split('_')[0]!) && !fieldNames.has(name))
  assert.ok(operations.length > 20)
  for (const name of operations) assert.ok(known.has(name) || kinds.has(name), name)
})

test('every field and parameter has a description', () => {
  assert.ok(fields.length > 500)
  const bare = fields.filter(({ field }) => field.$ref === undefined && field.description === undefined)
  assert.deepEqual(
    bare.map(({ path }) => path),
    [],
  )
  for (const { operationId, parameters = [] } of methods)
    for (const { name, description } of parameters) assert.ok(description, `${operationId} ${name}`)
})

test('every amount names its unit', () => {
  const unit =
    /USD|in the asset|smallest unit|fraction|percent|whole token|credits|multiple|units of fee_token|signed size/i
  const isAmount = (schema: Json): boolean =>
    schema.pattern === decimalPattern ||
    schema['x-decimal'] !== undefined ||
    /\{0,77\}/.test(String(schema.pattern)) ||
    (Array.isArray(schema.anyOf) && schema.anyOf.some((arm) => isAmount(arm as Json)))
  const amounts = fields.filter(({ field }) => isAmount(field))
  assert.ok(amounts.length > 80)
  for (const { path, field } of amounts) {
    assert.match(`${String(field.description)} ${String(field.title ?? '')}`, unit, path)
  }
})

test('every body has an example that is valid against its own schema', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv)
  ajv.addSchema(document, 'document')
  const bodies = methods.flatMap(({ operationId, requestBody }) => {
    const content = requestBody?.content['application/json']
    return content ? [{ operationId, ...content }] : []
  })
  assert.ok(bodies.length >= 15)
  for (const { operationId, schema, example } of bodies) {
    assert.notEqual(example, undefined, operationId)
    const check = ajv.compile({ $ref: `document${String(schema.$ref)}` })
    assert.ok(check(example), `${operationId}: ${ajv.errorsText(check.errors)}`)
  }
})

test('every operation that answers with a task names the form of its result', () => {
  const tasks = methods.filter(({ parameters = [] }) => parameters.some(({ name }) => name === 'wait'))
  assert.ok(tasks.length >= 13)
  for (const { operationId, responses } of tasks) {
    const { schema } = (responses['200']!.content as Record<string, { schema: Json }>)['application/json']!
    const component = document.components.schemas[String(schema.$ref).split('/').at(-1)!]!
    const own = (component.allOf as Json[])[1] as { properties: { result: { anyOf: Json[] } } }
    assert.match(String(own.properties.result.anyOf[0]!.$ref), /^#\/components\/schemas\/\w+$/, operationId)
  }
})

/** Their defaults are declared by the interface itself. */
const withDefaults = ['ImageRequest', 'ChatRequest']

test('no request field has a default keyword, which generators read as required', () => {
  for (const { operationId, requestBody } of methods) {
    const ref = requestBody?.content['application/json']?.schema.$ref
    if (ref === undefined || withDefaults.includes(String(ref).split('/').at(-1)!)) continue
    const component = document.components.schemas[String(ref).split('/').at(-1)!]!
    for (const { path, field } of fieldsOf('', component))
      assert.equal(field.default, undefined, operationId + path)
  }
})

/** orval names the types of an operation by its id and these words. */
test('no named schema has the name that a generator gives to the types of an operation', () => {
  const suffixes = ['Result', 'Params', 'Body', 'Data', 'Error', 'Errors', 'Responses']
  const taken = methods.flatMap(({ operationId }) => {
    const name = operationId.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
    return suffixes.map((suffix) => `${name}${suffix}`)
  })
  assert.deepEqual(
    Object.keys(document.components.schemas).filter((name) => taken.includes(name)),
    [],
  )
})

/** The form of a decimal has a message of its own. */
test('every pattern of a request has a description and an example, since errors never show it', () => {
  const parameters = methods.flatMap(({ operationId, parameters: list = [] }) =>
    list.map((each) => ({ path: `${operationId}.${each.name}`, field: each as Json })),
  )
  const ofQuery = parameters
    .map(({ path, field }) => ({ path, field: { ...field, ...(field.schema as Json) } }))
    .filter(({ path }) => !path.endsWith('.Idempotency-Key'))
  const named = methods.flatMap(({ requestBody }) => {
    const ref = requestBody?.content['application/json']?.schema.$ref
    const name = ref === undefined ? undefined : String(ref).split('/').at(-1)!
    return name === undefined ? [] : fieldsOf(name, document.components.schemas[name]!)
  })
  const withPattern = [...ofQuery, ...named].filter(
    ({ field }) => field.pattern !== undefined && field['x-decimal'] === undefined,
  )
  assert.ok(withPattern.length >= 5)
  for (const { path, field } of withPattern) {
    assert.equal(typeof field.description, 'string', path)
    assert.ok(Array.isArray(field.examples), path)
  }
})
