import type { JsonObject } from '#kernel/wire/json.ts'
import type { Token } from './chains.ts'

export const balanceChange = (
  chainId: string,
  { address, symbol, decimals }: Pick<Token, 'address' | 'symbol' | 'decimals'>,
  units: bigint,
): JsonObject => ({
  chain_id: chainId,
  token_address: address,
  symbol,
  amount: String(units),
  decimals,
})

/** Sums the changes per chain and token, without those that cancel each other out. */
export function sumChanges(changes: readonly JsonObject[]): JsonObject[] {
  const sums = new Map<string, JsonObject>()
  for (const each of changes) {
    const key = `${each.chain_id} ${each.token_address}`
    const before = BigInt(String(sums.get(key)?.amount ?? '0'))
    sums.set(key, { ...each, amount: String(before + BigInt(String(each.amount))) })
  }
  return [...sums.values()].filter(({ amount }) => amount !== '0')
}
