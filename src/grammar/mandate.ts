import { canonicalAddress } from '#kernel/money/chains.ts'
import { isDecimal, toUnits } from '#kernel/money/money.ts'
import { canonicalJson, type Json, type JsonObject } from '#kernel/wire/json.ts'
import type { Names } from './asset-and-chain-names.ts'
import type { Slots } from './clause-reader.ts'
import type { PlanStep } from './intent-frame.ts'
import { changes, type Registry } from './operation-registry.ts'
import { inputsOf } from './resolve-plan.ts'
import type { Outputs } from './step-outputs.ts'
import type { Understanding } from './understanding.ts'
import { wordSet } from './word-maps.ts'

/**
 * A mandate is what the user's own words allow: the calls that the grammar itself would make from them, each once.
 * A model only proposes; a proposal runs if it asks for one of these calls, or for less of it.
 */
export type Allowance = { step: PlanStep; slots: Slots; left: number }
export type Mandate = readonly Allowance[]
export type Proposal = { operation: string; input: JsonObject }
export type Verdict = { allowed: true; at: number } | { allowed: false; reason: string }

const callsOfEachMax = 5

/** Returns the mandate of a message; it is empty if the message orders nothing that changes something. */
export const mandateOf = ({ intents }: Understanding, registry: Pick<Registry, 'operations'>): Mandate =>
  intents
    .filter(({ mood }) => mood === 'do')
    .flatMap(({ steps, slots }) =>
      steps
        .filter((step) => changes(step, registry))
        .map((step) => ({ step, slots, left: step.each === undefined ? 1 : callsOfEachMax })),
    )

/** The fields in which a proposal may have less than the user said, but not more. */
const atMost = wordSet(
  'amount amount_usd notional_usd notional_usdc amount_usdc leverage slippage_bps slippage_pct size',
)
/** Technical fields of a call, which the user's words never contain. */
const technical = wordSet('wait timeout idempotency_key quote_id client_order_id confirm_repeat')
/**
 * The values that the contracts use for absent fields. A proposal that contains such a value asks for nothing more than
 * a proposal without the field.
 */
const defaults: Readonly<Record<string, Json>> = {
  order_type: 'market',
  tif: 'gtc',
  dryrun: false,
  reduce_only: false,
  cancel_conditional_orders: false,
}
const chainFields = wordSet(
  'chain_id chain chain_id_in chain_id_out trigger_token_chain source_chain_id destination_chain_id',
)
const tokenFields: Readonly<Record<string, string>> = {
  token_in: 'chain_id_in',
  token_out: 'chain_id_out',
  token_address: 'chain_id',
  trigger_token_address: 'trigger_token_chain',
}

/** Gives one spelling to a value: a chain becomes its id, a token its address, a number decimal text. */
function canonical(field: string, value: Json, { input, names }: { input: JsonObject; names: Names }): Json {
  if (chainFields.has(field)) {
    const text = String(value).toLowerCase()
    return (
      names.universe.chains.find(
        ({ id, name, displayName }) => id === text || name === text || displayName.toLowerCase() === text,
      )?.id ?? text
    )
  }
  const chainField = tokenFields[field]
  if (chainField !== undefined && typeof value === 'string') {
    const chain = canonical(chainField, input[chainField] ?? input.chain_id_in ?? '', { input, names })
    const token = names.bySymbol.get(value.toLowerCase())?.tokens.find(({ chainId }) => chainId === chain)
    return canonicalAddress(token?.address ?? value)
  }
  return typeof value === 'number' ? String(value) : value
}

const isNumeric = (value: Json | undefined): value is string =>
  typeof value === 'string' && isDecimal(value) && !value.startsWith('-')

/** Returns the first field in which a proposal goes beyond the call; undefined if it stays within the call. */
function excess(call: JsonObject, proposal: JsonObject, names: Names): string | undefined {
  const own = (input: JsonObject, field: string): Json | undefined =>
    input[field] === undefined || input[field] === null
      ? defaults[field]
      : canonical(field, input[field], { input, names })
  for (const field of new Set([...Object.keys(call), ...Object.keys(proposal)])) {
    if (technical.has(field)) continue
    const said = own(call, field)
    const wanted = own(proposal, field)
    if (said === undefined && wanted === undefined) continue
    // The chain of the bought token may be left out if it is the chain of the sold token.
    if (field === 'chain_id_out' && wanted === own(call, 'chain_id_in') && said === undefined) continue
    if (canonicalJson(said ?? null) === canonicalJson(wanted ?? null)) continue
    const isLess =
      atMost.has(field) &&
      isNumeric(said) &&
      isNumeric(wanted) &&
      toUnits(wanted, 18) > 0n &&
      toUnits(wanted, 18) <= toUnits(said, 18)
    if (!isLess) return field
  }
  return undefined
}

type Judged = { names: Names; outputs: Outputs; earlier?: Outputs }

/**
 * Decides whether the user's words allow a proposed call. A call beyond the mandate needs another message of the user.
 */
export function permits(
  mandate: Mandate,
  proposal: Proposal,
  { names, outputs, earlier = {} }: Judged,
): Verdict {
  let reason = `nothing that was said asks for ${proposal.operation}`
  for (const [at, { step, slots, left }] of mandate.entries()) {
    if (step.operation !== proposal.operation) continue
    if (left <= 0) {
      reason = 'what was said is done already'
      continue
    }
    const calls = inputsOf(step, { slots, names, outputs, earlier })
    if (calls.state !== 'ready') {
      reason = 'the amount or the place is not known from what was read'
      continue
    }
    const beyond = calls.inputs.map((call) => excess(call, proposal.input, names))
    if (beyond.some((field) => field === undefined)) return { allowed: true, at }
    reason = `${beyond[0] ?? 'the call'} goes beyond what was said`
  }
  return { allowed: false, reason }
}

/** Returns the mandate after an allowed call, which uses up one of its allowances. */
export const used = (mandate: Mandate, at: number): Mandate =>
  mandate.map((allowance, index) => (index === at ? { ...allowance, left: allowance.left - 1 } : allowance))
