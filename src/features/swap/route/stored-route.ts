import type { ProposedRoute } from '#kernel/money/swap-provider.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

const unitFields = ['amountInUnits', 'amountOutUnits', 'amountOutMinUnits', 'amountUnits', 'value', 'gas']

/** Returns a route as JSON, with integers as text and times as ISO text. */
export const storedRoute = (route: ProposedRoute): JsonObject =>
  JSON.parse(
    JSON.stringify(route, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
  )

export function toRoute(stored: JsonObject): ProposedRoute {
  const route = JSON.parse(JSON.stringify(stored), (key, value: unknown) =>
    unitFields.includes(key) && typeof value === 'string' ? BigInt(value) : value,
  ) as ProposedRoute & { expiresAt: string }
  // A quote that an earlier version stored has no deposit id.
  const depositId = route.depositId ?? route.providerRequestId
  return { ...route, depositId, expiresAt: new Date(route.expiresAt) }
}

export type StoredCall = { to: string; value: string; data: string }
export const storedCalls = (calls: readonly EvmCall[]): StoredCall[] =>
  calls.map(({ to, value, data }) => ({ to, value: String(value), data }))
export const toCalls = (calls: readonly StoredCall[]) =>
  calls.map(({ to, value, data }) => ({ to, value: BigInt(value), data }))
