import { mulDiv } from './money.ts'

type Sale = { inUnits: bigint; minOutUnits: bigint }

/** Returns the part of the input that a payment accounts for; from the minimum on, it is the whole input. */
export const soldPart = ({ inUnits, minOutUnits }: Sale, outUnits: bigint): bigint =>
  outUnits >= minOutUnits ? inUnits : mulDiv(inUnits, outUnits, minOutUnits)
