import { mulDiv } from './money.ts'

type Sale = { inUnits: bigint; minOutUnits: bigint }

/**
 * Returns which part of the input of a sale a payment covers: all of it from the minimum on, and a proportional part
 * below the minimum.
 */
export const soldPart = ({ inUnits, minOutUnits }: Sale, outUnits: bigint): bigint =>
  outUnits >= minOutUnits ? inUnits : mulDiv(inUnits, outUnits, minOutUnits)
