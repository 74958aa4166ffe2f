import { mulDiv } from './money.ts'

type Sale = { inUnits: bigint; minOutUnits: bigint }

/**
 * Returns the part of the input that a payment accounts for; a payment of at least the minimum accounts for all of
 * it.
 */
export const soldPart = ({ inUnits, minOutUnits }: Sale, outUnits: bigint): bigint =>
  outUnits >= minOutUnits ? inUnits : mulDiv(inUnits, outUnits, minOutUnits)
