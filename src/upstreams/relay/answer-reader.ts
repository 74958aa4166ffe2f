import { createAnswerReader, isHash } from '#kernel/money/provider-answer-reader.ts'

export const providerName = 'relay'

export const { addressOf, assertMinimum, away, changed, fieldsOf, hexOf, listOf, unitsOf } =
  createAnswerReader({ name: providerName, title: 'The solver' })

export function requestIdOf(value: unknown): string {
  if (!isHash(value)) throw changed('no id of the request')
  return value.toLowerCase()
}

/** Converts a percentage in decimal text to hundredths of a percent, rounded towards zero; 0 if there is none. */
export function bpsOf(percent: unknown): number {
  const match = typeof percent === 'string' ? /^(-?)(\d{1,6})(?:\.(\d{1,2})\d*)?$/.exec(percent) : null
  if (!match) return 0
  const [, sign, whole = '0', fraction = ''] = match
  const bps = Number(whole) * 100 + Number(fraction.padEnd(2, '0') || '0')
  return sign === '-' ? -bps : bps
}
