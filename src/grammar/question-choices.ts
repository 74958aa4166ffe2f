import type { Names } from './asset-and-chain-names.ts'
import type { Slots } from './clause-reader.ts'

/**
 * One choice that answers a question: the slots that the choice fills, and the intent that continues with them if it is
 * another than the intent that asks.
 */
export type Choice = { label: string; fill: Slots; intent?: string }

/** Makes the choices that fill a slot, from the values of the slot and the label of each value. */
export const choose = (slot: string, labels: Readonly<Record<string, string>>): Choice[] =>
  Object.entries(labels).map(([value, label]) => ({ label, fill: { [slot]: value } }))

export const chainChoices = (chainIds: readonly string[], { chainById }: Names, slot = 'chain'): Choice[] =>
  chainIds.flatMap((id) => {
    const chain = chainById.get(id)
    return chain ? [{ label: chain.displayName, fill: { [slot]: id } }] : []
  })
