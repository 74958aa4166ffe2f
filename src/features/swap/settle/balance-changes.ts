import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import type { WrapLog } from '#upstreams/evm/swap-calls.ts'
import type { TransferLog } from '#upstreams/evm/token-calls.ts'

type Executed = {
  account: string
  calls: readonly Pick<EvmCall, 'to' | 'value'>[]
  transfers: readonly TransferLog[]
  wraps: readonly WrapLog[]
}

/** Returns the balance changes of a batch, by token address in lower case; a change of 0 is left out. */
export function changesOf(
  { native, swaps }: Pick<EvmChainRow, 'native' | 'swaps'>,
  { account, calls, transfers, wraps }: Executed,
): Map<string, bigint> {
  const own = account.toLowerCase()
  const coin = native.address.toLowerCase()
  const sums = new Map<string, bigint>()
  const add = (token: string, units: bigint) => sums.set(token, (sums.get(token) ?? 0n) + units)
  for (const { token, from, to, amountUnits } of transfers) {
    if (to === own) add(token, amountUnits)
    if (from === own) add(token, -amountUnits)
  }
  // Each call of a swap spends its whole value; what Relay's router returns of it is a separate payment.
  add(coin, -calls.reduce((sum, { value }) => sum + value, 0n))
  // Relay's router swaps for itself and reports what it pays, whereas other routers unwrap for the account.
  const relayed = (swaps?.relayRouters ?? []).flatMap(({ router, approvalProxy }) => [router, approvalProxy])
  const isRelayed = calls.some(({ to }) => relayed.some((each) => each.toLowerCase() === to.toLowerCase()))
  const routers = isRelayed ? [] : (swaps?.routers ?? []).map((each) => each.toLowerCase())
  for (const { kind, account: of, amountUnits } of wraps) {
    const wrapped = swaps!.wrapped.toLowerCase()
    if (kind === 'wrapped' && of === own) add(wrapped, amountUnits)
    if (kind === 'unwrapped' && of === own) add(wrapped, -amountUnits)
    if (kind === 'paid' && of === own) add(coin, amountUnits)
    // The router unwraps for the recipient of its swap, which is the account itself.
    if (kind === 'unwrapped' && (of === own || routers.includes(of))) add(coin, amountUnits)
  }
  return new Map([...sums].filter(([, units]) => units !== 0n))
}
