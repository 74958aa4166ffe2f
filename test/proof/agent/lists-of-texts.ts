import { chainList, solanaId } from '#features/chains/chain-list.ts'
import { withChecksum } from '#upstreams/evm/address.ts'

const nowhere = 'http://127.0.0.1:1'
const chains = chainList({
  urls: { '8453': nowhere, '137': nowhere, '42161': nowhere, [solanaId]: nowhere },
  finality: 'local',
  isSolanaSponsored: true,
  providers: { relay: true, lifi: true },
})
/** What the texts of recommendations name, as the gateway has it. */
export const listsOfTexts = { chains, spellAddress: withChecksum }
