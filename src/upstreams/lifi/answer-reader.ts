import { createAnswerReader } from '#kernel/money/provider-answer-reader.ts'

export const providerName = 'lifi'

export const { addressOf, assertMinimum, away, changed, fieldsOf, hashOf, hexOf, quantityOf, unitsOf } =
  createAnswerReader({ name: providerName, title: 'LI.FI' })
