/** Encodes ERC-4626 by hand: every argument is one 32-byte word. */

const selectors = {
  approve: '0x095ea7b3',
  asset: '0x38d52e0f',
  balanceOf: '0x70a08231',
  convertToAssets: '0x07a2d13a',
  decimals: '0x313ce567',
  deposit: '0x6e553f65',
  redeem: '0xba087652',
  symbol: '0x95d89b41',
  totalAssets: '0x01e1d114',
  totalSupply: '0x18160ddd',
  withdraw: '0xb460af94',
} as const

export type Method = keyof typeof selectors

const topics = {
  deposit: '0xdcbc1c05240f31ff3ad067ef1ee35ce4997762752e3a095284754544f4c709d7',
  withdraw: '0xfbde797d201c681b91056529119e0b02407c7bb96a4a2c75c01fc9667232c8db',
} as const

const word = (value: bigint | string): string => {
  if (typeof value === 'bigint') return value.toString(16).padStart(64, '0')
  if (!/^0x[0-9a-fA-F]{40}$/.test(value)) throw new RangeError(`not an address: ${value}`)
  return value.slice(2).toLowerCase().padStart(64, '0')
}

export const callData = (method: Method, ...args: (bigint | string)[]): string =>
  selectors[method] + args.map(word).join('')

/** Returns the first word of a contract's reply as a number, or undefined if the reply has less than a word. */
export const parseUint = (data: string): bigint | undefined =>
  data.length >= 66 ? BigInt(data.slice(0, 66)) : undefined

export const addressOf = (data: string): string | undefined =>
  data.length >= 66 ? `0x${data.slice(26, 66)}` : undefined

export type Log = { address: string; topics: readonly string[]; data: string }
export type Flow = { assetsUnits: bigint; sharesUnits: bigint }

type Wanted = { vault: string; owner: string; event: keyof typeof topics }

/** Returns what one owner deposited or withdrew in one transaction, or undefined without such an event. */
export function flowOf(logs: readonly Log[], { vault, owner, event }: Wanted): Flow | undefined {
  // Deposit(sender, owner, ...) and Withdraw(sender, receiver, owner, ...): the owner is the last indexed word.
  const ownerAt = event === 'deposit' ? 2 : 3
  const flows = logs.filter(
    (log) =>
      log.address.toLowerCase() === vault.toLowerCase() &&
      log.topics[0] === topics[event] &&
      log.topics[ownerAt]?.slice(26).toLowerCase() === owner.slice(2).toLowerCase() &&
      log.data.length === 130,
  )
  if (flows.length === 0) return undefined
  const wordAt = (log: Log, index: number) => BigInt(`0x${log.data.slice(2 + index * 64, 66 + index * 64)}`)
  return flows.reduce(
    (sum, log) => ({
      assetsUnits: sum.assetsUnits + wordAt(log, 0),
      sharesUnits: sum.sharesUnits + wordAt(log, 1),
    }),
    { assetsUnits: 0n, sharesUnits: 0n },
  )
}
