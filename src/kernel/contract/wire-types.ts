import { decimalPattern } from '#kernel/money/money.ts'
import * as T from './schema.ts'

/** The wire types of the interface. Schemas have no behaviour: `x-decimal` marks fields that are read from raw text. */

const example = (value: unknown) => ({ examples: [value] })

export const Id = (description: string) => T.String({ minLength: 1, maxLength: 128, description })
export const Time = T.String({
  format: 'date-time',
  description: 'ISO-8601 UTC with milliseconds',
  ...example('2026-01-31T12:00:00.000Z'),
})
export const TimeOrNull = T.Union([Time, T.Null()])
export const Dec = T.String({
  pattern: decimalPattern,
  description: 'Decimal text, never in exponent form',
  ...example('12.5'),
})
export const DecOrNull = T.Union([Dec, T.Null()])
export const Units = T.String({
  pattern: '^(0|[1-9][0-9]{0,77})$',
  description: 'Smallest units of the token',
  ...example('12500000'),
})
export const SignedUnits = T.String({
  pattern: '^-?(0|[1-9][0-9]{0,77})$',
  description: 'Signed smallest units of the token',
})
export const ChainId = T.String({ description: 'Chain id as a string', ...example('8453') })
export const ChainIdIn = T.String({
  maxLength: 16,
  pattern: '^[1-9][0-9]*$',
  description: 'Chain id as a string',
  ...example('8453'),
})
export const Address = T.String({ minLength: 1, maxLength: 64 })
export const UnitsIn = (description: string) =>
  T.Unsafe<string | number>({
    type: ['string', 'integer'],
    pattern: '^(0|[1-9][0-9]{0,77})$',
    minimum: 0,
    description,
    examples: ['25000000'],
  })
export const ChainRefIn = (description: string) =>
  T.Unsafe<string | number>({
    type: ['string', 'integer'],
    maxLength: 64,
    description: `${description}: id or name`,
    examples: ['8453'],
  })
export const TokenRefIn = (description: string) =>
  T.String({
    minLength: 1,
    maxLength: 64,
    description: `${description}: address, or symbol of a listed token; 0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE is the native coin, and on an EVM chain the zero address too`,
    examples: ['USDC'],
  })
/** A fraction, from which no money is computed. */
export const Ratio = T.Number({ description: 'A fraction: 0.05 is 5 %' })
export const RatioOrNull = T.Union([Ratio, T.Null()])
export const Text = T.String()
export const TextOrNull = T.Union([T.String(), T.Null()])
export const OpenObject = T.Object({}, { additionalProperties: true })

type DecInOptions = {
  exclusiveMinimum?: number
  minimum?: number
  maximum?: number
  places?: number
  default?: number
  description?: string
  example?: unknown
}

/** A decimal sent as text or as a JSON number, read from the raw text of either. */
export function DecIn({ places = 18, description, example: shown = '25.5', ...bounds }: DecInOptions = {}) {
  return T.Unsafe<string>({
    type: ['number', 'string'],
    pattern: decimalPattern,
    ...bounds,
    ...(description && { description }),
    examples: [shown],
    'x-decimal': { places },
  })
}

export const OneOf = <const V extends readonly string[]>(values: V, options: T.TSchemaOptions = {}) =>
  T.Unsafe<V[number]>({ type: 'string', enum: [...values], ...options })

export const Nullable = <S extends T.TSchema>(schema: S, options: T.TSchemaOptions = {}) =>
  T.Union([schema, T.Null()], options)

/** A page of a list, inside an object so that fields can be added later. */
export const Page = <S extends T.TSchema>(item: S, options: T.TSchemaOptions = {}) =>
  T.Object({ items: T.Array(item), total: T.Integer(), skip: T.Integer(), limit: T.Integer() }, options)

/** The field with which a person acts for a linked agent. */
export const ForAgent = T.Optional(
  T.String({
    pattern: '^agt_[0-9A-HJKMNP-TV-Z]{26}$',
    maxLength: 30,
    description: 'An agent that is linked to you, by its id; left out: yourself',
    examples: ['agt_01JZ8Q4W7N5V0K3T2R6Y9B1C4D'],
  }),
)
export const ForAgentQuery = T.Object({ for_agent: ForAgent })
