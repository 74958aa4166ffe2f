import type { SlotRule } from './intent-frame.ts'

/** Slot rules that several intents share, with their questions. */

export const amount: SlotRule = { name: 'amount', question: 'How much?' }
export const asset: SlotRule = { name: 'asset', question: 'Which asset?' }
export const legs: SlotRule = {
  name: 'stop',
  question: 'At which price or percentage?',
  anyOf: ['stop', 'target'],
}
