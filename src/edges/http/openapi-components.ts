import type { Schema } from '#kernel/contract/decimal-fields.ts'
import { isRecord } from '#kernel/wire/json.ts'

type Json = Record<string, unknown>

/** Collects the schemas with an `$id`: the document contains each once, and refers to it in all other places. */
export type Components = {
  refer(schema: Schema): Json
  schemas(): Record<string, Json>
}

const schemaMaps = new Set(['properties', 'patternProperties', '$defs', 'dependentSchemas'])
/** The content of these keywords is data, in which `$id` means nothing. */
const dataKeywords = new Set(['default', 'examples', 'example', 'enum', 'const', 'required'])

export function components(): Components {
  const named = new Map<string, Json>()
  const origins = new Map<string, string>()

  const shown = (schema: Schema): Json => {
    const copy: Json = {}
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === '$id' || keyword.startsWith('~')) continue
      copy[keyword] = within(keyword, value)
    }
    return withoutDefaulted(copy)
  }
  const within = (keyword: string, value: unknown): unknown => {
    if (dataKeywords.has(keyword)) return value
    if (schemaMaps.has(keyword) && isRecord(value)) {
      return Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, isRecord(item) ? refer(item) : item]),
      )
    }
    if (Array.isArray(value)) return value.map((item) => (isRecord(item) ? refer(item) : item))
    return isRecord(value) && !keyword.startsWith('x-') ? refer(value) : value
  }
  const refer = (schema: Schema): Json => {
    const { $id } = schema
    if (typeof $id !== 'string') return shown(schema)
    const text = JSON.stringify(schema)
    const origin = origins.get($id)
    if (origin !== undefined && origin !== text) throw new Error(`two different schemas are named ${$id}`)
    if (origin === undefined) {
      origins.set($id, text)
      named.set($id, {})
      named.set($id, shown(schema))
    }
    return { $ref: `#/components/schemas/${$id}` }
  }
  return {
    refer,
    schemas: () => Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

/** Removes the fields with a default from the required ones, even if the schema's own list requires them. */
function withoutDefaulted(copy: Json): Json {
  const { required, properties } = copy
  if (!Array.isArray(required) || !isRecord(properties)) return copy
  const needed = required.filter((name) => {
    const field = properties[String(name)]
    return !isRecord(field) || field.default === undefined
  })
  const { required: _, ...rest } = copy
  return needed.length > 0 ? { ...rest, required: needed } : rest
}

/** The schemas whose `default` keywords stay in the document, because the specified interface declares them there. */
const interfaceDefaults: readonly unknown[] = ['ImageRequest', 'ChatRequest']

/** Generators treat a field with `default` as always present, so the text names the default instead. */
export function defaultsAsText(schema: Schema): Schema {
  const { properties } = schema
  if (!isRecord(properties)) return schema
  if (interfaceDefaults.includes(schema.$id)) return withoutDefaulted({ ...schema })
  const shown = Object.entries(properties).map(([name, field]) => {
    if (!isRecord(field) || field.default === undefined) return [name, field]
    const { default: value, description, ...rest } = field
    const text = `Default: ${String(value)}`
    return [
      name,
      { ...rest, description: typeof description === 'string' ? `${description}. ${text}` : text },
    ]
  })
  return { ...withoutDefaulted({ ...schema }), properties: Object.fromEntries(shown) }
}

const location = { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } }

export const httpValidationError: Schema = {
  $id: 'HTTPValidationError',
  description: 'A 422: one item of `detail` for each wrong field. Nothing was done.',
  type: 'object',
  required: ['detail', 'code', 'retryable', 'request_id'],
  properties: {
    detail: {
      type: 'array',
      description: 'What is wrong, where, and what to send instead',
      items: {
        $id: 'ValidationError',
        type: 'object',
        required: ['loc', 'msg', 'type'],
        properties: {
          loc: { ...location, description: 'Part of the request, then the path in it' },
          msg: { type: 'string' },
          type: { type: 'string' },
          ctx: { type: 'object', description: 'The figures of the rule', additionalProperties: true },
        },
      },
    },
    code: { type: 'string', enum: ['validation'], description: 'The code of every 422' },
    retryable: { type: 'boolean', description: 'Always false: the same request fails again' },
    request_id: { type: 'string', description: 'Id of this request, also in the header X-Request-Id' },
  },
}

const text = (description: string) => ({ type: 'string', description })

export const problemSchema: Schema = {
  $id: 'Problem',
  description: 'An error. Fields beside the required ones depend on the code.',
  type: 'object',
  required: ['detail', 'code', 'retryable', 'request_id'],
  properties: {
    detail: { type: 'string' },
    code: { type: 'string', description: 'One of the codes of /error-catalog.json' },
    retryable: { type: 'boolean', description: 'The same request under the same key can succeed later' },
    outcome: {
      type: 'string',
      enum: ['not_executed', 'unknown'],
      description: 'not_executed: nothing was sent. unknown: repeat under the same key to learn it',
    },
    reason: { type: ['string', 'null'], description: 'Why, in detail' },
    missing: {
      type: 'array',
      items: { type: 'string' },
      description: 'setup_incomplete: steps that are missing',
    },
    setup_path: text('setup_incomplete: path of the setup'),
    next_call: {
      $id: 'NextCall',
      type: 'object',
      description: 'setup_incomplete: the call that comes next',
      properties: {
        operation: text('Name of the operation'),
        method: text('HTTP method'),
        path: text('Path'),
        body: { type: 'object', description: 'Body to send', additionalProperties: true },
      },
      additionalProperties: true,
    },
    running_task_id: {
      type: ['string', 'null'],
      description: 'setup_incomplete: the setup or funding that is running',
    },
    retry_after: {
      type: 'number',
      description: 'Seconds to wait before the next attempt; also in Retry-After',
    },
    budget: text('rate_limited, overloaded, unavailable: the limit that is used up'),
    owner: text('rate_limited, overloaded, unavailable: whose limit it is'),
    scope: text('insufficient_scope: the scope that is missing. trading_paused: what is stopped'),
    rule: text('policy_denied, approval_required: the rule that refused, or that reserves it for a person'),
    server_time: { type: 'integer', description: 'stale_timestamp, signature_replayed: Unix seconds' },
    next_timestamp: { type: 'integer', description: 'signature_replayed: the timestamp to sign next' },
    agent_id: text('duplicate_key: the agent that the key belongs to'),
    task_id: text('conflict: the task that is running'),
    status: text('The present state of the object'),
    symbol: text('insufficient_balance: symbol of the token'),
    token: text('insufficient_balance: address of the token, or its symbol without one'),
    decimals: { type: 'integer', description: 'insufficient_balance: decimal places of the token' },
    required: text('insufficient_balance: amount that is needed, in whole tokens as decimal text'),
    available: text('insufficient_balance: amount that is free, in whole tokens as decimal text'),
    idempotency_key: text('Key under which the request is to be repeated'),
    allow: {
      type: 'array',
      items: { type: 'string' },
      description: 'method_not_allowed: methods of the path',
    },
    request_id: { type: 'string' },
  },
  additionalProperties: true,
}
