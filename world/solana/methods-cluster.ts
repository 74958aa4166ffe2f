import type { Chain } from './chain.ts'
import { feeOf } from './effects.ts'
import { parseMessage } from './message.ts'
import { addressOf, bytesOf, commitmentOf, configAt, countOf, listAt, type Params, textAt } from './params.ts'
import { invalidParams } from './rpc-error.ts'
import { blockhashSlots, epochOf, heightOf, slotsPerEpoch } from './slots.ts'

export const apiVersion = '2.3.0'
export const withContext = (slot: number, value: unknown) => ({ context: { apiVersion, slot }, value })

const accountBytesMax = 10_485_760
const feeAccountsMax = 128

const readMessage = (text: string) => {
  try {
    return parseMessage(bytesOf(text, 'base64'))
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw invalidParams(`failed to deserialize solana_message::versions::VersionedMessage: ${cause.message}`)
  }
}

/** Methods about the chain as a whole. */
export const clusterMethods = (chain: Chain) => ({
  getHealth: () => 'ok',
  getVersion: () => ({ 'feature-set': 0, 'solana-core': `${apiVersion}-litesvm` }),
  getGenesisHash: () => chain.genesisHash,
  getSlot: (params: Params) => chain.slotAt(commitmentOf(configAt(params, 0))),
  getBlockHeight: (params: Params) => heightOf(chain.slotAt(commitmentOf(configAt(params, 0)))),
  getEpochInfo: (params: Params) => {
    const absoluteSlot = chain.slotAt(commitmentOf(configAt(params, 0)))
    return {
      absoluteSlot,
      blockHeight: heightOf(absoluteSlot),
      epoch: epochOf(absoluteSlot),
      slotIndex: absoluteSlot % slotsPerEpoch,
      slotsInEpoch: slotsPerEpoch,
      transactionCount: chain.ledger.count(),
    }
  },
  getLatestBlockhash: (params: Params) => {
    const slot = chain.slotAt(commitmentOf(configAt(params, 0)))
    const lastValidBlockHeight = heightOf(slot) + blockhashSlots
    return withContext(slot, { blockhash: chain.time.hashOf(slot), lastValidBlockHeight })
  },
  isBlockhashValid: (params: Params) =>
    withContext(
      chain.slotAt(commitmentOf(configAt(params, 1))),
      chain.time.isBlockhashValid(addressOf(textAt(params, 0))),
    ),
  getMinimumBalanceForRentExemption: (params: Params) =>
    chain.rentExempt(countOf(params[0], 'data length', accountBytesMax)),
  getFeeForMessage: (params: Params) => {
    const message = readMessage(textAt(params, 0))
    const fee = chain.time.isBlockhashValid(message.recentBlockhash) ? feeOf(message) : null
    return withContext(chain.slotAt(commitmentOf(configAt(params, 1))), fee)
  },
  /** Fees of the last 150 slots, all 0, as on an idle chain. */
  getRecentPrioritizationFees: (params: Params) => {
    if (params[0] !== undefined) listAt(params, 0, feeAccountsMax).forEach(addressOf)
    const newest = chain.slotAt('processed')
    return Array.from({ length: blockhashSlots }, (_, at) => ({
      prioritizationFee: 0,
      slot: newest - blockhashSlots + 1 + at,
    }))
  },
})
