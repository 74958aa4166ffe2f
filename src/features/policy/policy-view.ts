import type { InputOf } from '#kernel/contract/operation.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { contract } from './contract.ts'
import * as rules from './rules.ts'
import type { StoredPolicy } from './store.ts'

export type View = StoredPolicy & { limits: rules.Limits; pending: readonly rules.Change[] }
export type TightenInput = InputOf<(typeof contract)['entries']['tighten']>
export type PolicyInput = Omit<TightenInput, 'for_agent'>

const chainAddressView = (text: string) => {
  const colon = text.indexOf(':')
  return { chain_id: text.slice(0, colon), address: text.slice(colon + 1) }
}

export const fieldNames: Record<keyof rules.Limits, keyof PolicyInput> = {
  perTransactionMicros: 'per_transaction_usd',
  perDayMicros: 'per_day_usd',
  chatPerDayMicros: 'chat_per_day_usd',
  chains: 'chains',
  tokens: 'tokens',
  recipients: 'recipients',
  approvalAboveMicros: 'approval_above_usd',
}

const valueView = (value: rules.Change['value']) => {
  if (typeof value === 'bigint') return rules.usd(value)
  return value?.map((each) => (each.includes(':') ? chainAddressView(each) : each)) ?? null
}

/** Returns the state that a raise starts from: the current values of its fields, and their pending values. */
export const basisOf = ({ limits, pending }: View, fields: readonly (keyof rules.Limits)[]): JsonObject =>
  Object.fromEntries(
    fields.map((field) => {
      const waits = pending.filter((change) => change.field === field).map(({ value }) => valueView(value))
      return [fieldNames[field], { now: valueView(limits[field]), waits }]
    }),
  )

const changeView = ({ id, field, value, requestedAt, effectiveAt }: rules.Change) => ({
  change_id: id,
  field: fieldNames[field],
  [fieldNames[field]]: valueView(value),
  requested_at: requestedAt.toISOString(),
  effective_at: effectiveAt.toISOString(),
})

export const policyView = (
  { version, limits, spentMicros, chatSpentMicros, paused, updatedAt, pending }: View,
  coolingMs: number,
) => ({
  version,
  per_transaction_usd: rules.usd(limits.perTransactionMicros),
  per_day_usd: rules.usd(limits.perDayMicros),
  spent_24h_usd: rules.usd(spentMicros),
  remaining_24h_usd: rules.usd(rules.remainingMicros({ limits, spentMicros })),
  chat_per_day_usd: rules.usd(limits.chatPerDayMicros),
  chat_remaining_24h_usd: rules.usd(rules.chatRemainingMicros({ limits, chatSpentMicros })),
  chains: [...limits.chains],
  tokens: limits.tokens?.map(chainAddressView) ?? null,
  recipients: limits.recipients.map(chainAddressView),
  approval_above_usd: limits.approvalAboveMicros === null ? null : rules.usd(limits.approvalAboveMicros),
  paused:
    paused && paused.scope !== 'venue' ? { scope: paused.scope, since: paused.since.toISOString() } : null,
  updated_at: updatedAt?.toISOString() ?? null,
  pending_changes: pending.map(changeView),
  cooling_seconds: coolingMs / 1_000,
})
