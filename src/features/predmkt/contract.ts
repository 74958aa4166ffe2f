import { group, type InputOf } from '#kernel/contract/operation.ts'
import { accountEntries } from './account-contract.ts'
import { marketEntries } from './market-contract.ts'
import { orderEntries } from './order-contract.ts'
import { recordEntries } from './record-contract.ts'

const about =
  'Prediction markets: find one, set the account up, fund it, and trade shares that pay 1 USD if right.'

export const contract = group('predmkt', about, {
  ...marketEntries,
  ...accountEntries,
  ...orderEntries,
  ...recordEntries,
})

export type PredmktInput<Key extends keyof typeof contract.entries> = InputOf<(typeof contract.entries)[Key]>
