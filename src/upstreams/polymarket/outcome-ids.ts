import type { Protocol } from './contracts.ts'

/**
 * Ids of the second protocol have a layout of their own, in which 64 bits are reserved and zero; ids of the first one
 * are hashes. https://docs.polymarket.com/migrate/polymarket-v2/positions
 */

const reservedBits = ((1n << 64n) - 1n) << 40n
const idMax = (1n << 256n) - 1n

/** Returns the protocol of an outcome's id; undefined if the text is no id. */
export function protocolOf(outcomeId: string): Protocol | undefined {
  if (!/^[1-9][0-9]{0,77}$/.test(outcomeId)) return undefined
  const id = BigInt(outcomeId)
  if (id > idMax) return undefined
  return (id & reservedBits) === 0n ? 'v2' : 'v1'
}

/** A condition has 32 bytes in the first protocol, and 31 in the second one, where it begins the ids of its outcomes. */
export function isConditionOf(conditionId: string, outcomeId: string, protocol: Protocol): boolean {
  if (protocol === 'v1') return /^0x[0-9a-f]{64}$/i.test(conditionId)
  const condition = BigInt(outcomeId).toString(16).padStart(64, '0').slice(0, 62)
  return conditionId.toLowerCase() === `0x${condition}`
}
