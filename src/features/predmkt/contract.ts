import { group, type InputOf } from '#kernel/contract/operation.ts'
import { accountEntries } from './account-contract.ts'
import { marketEntries } from './market-contract.ts'
import { orderEntries } from './order-contract.ts'
import { recordEntries } from './record-contract.ts'

export const contract = group('predmkt', {
  ...marketEntries,
  ...accountEntries,
  ...orderEntries,
  ...recordEntries,
})

export type PredmktInput<Key extends keyof typeof contract.entries> = InputOf<(typeof contract.entries)[Key]>
