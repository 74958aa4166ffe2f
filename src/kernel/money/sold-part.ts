import { mulDiv } from './money.ts'

type Sale = { inUnits: bigint; minOutUnits: bigint }

/** The part of what was sent for which so much was paid: all of it from the minimum on. */
export const soldPart = ({ inUnits, minOutUnits }: Sale, outUnits: bigint): bigint =>
  outUnits >= minOutUnits ? inUnits : mulDiv(inUnits, outUnits, minOutUnits)
