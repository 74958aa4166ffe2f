import type { Chain } from './chain.ts'
import { withContext } from './methods-cluster.ts'
import { commitmentOf, configAt, countOf, encodingOf, type Params } from './params.ts'
import { RpcError } from './rpc-error.ts'
import { heightOf, slotMs, slotsPerEpoch } from './slots.ts'
import { transactionEncodings, transactionView } from './transaction-view.ts'

const blocksMax = 500_000
const samplesMax = 720
const leadersMax = 5_000
const sampleSlots = 150
/** One validator without an owner: clients only read its identity. */
const validator = 'Sysvar1111111111111111111111111111111111111'

/** Past blocks and cluster figures, for wallets and SDKs. */
export const historyMethods = (chain: Chain) => {
  const newest = (params: Params, at: number) => chain.slotAt(commitmentOf(configAt(params, at)))

  const slotAt = (params: Params): number => {
    const slot = countOf(params[0], 'slot', Number.MAX_SAFE_INTEGER)
    if (slot > chain.slotAt('confirmed')) throw new RpcError(-32004, `Block not available for slot ${slot}`)
    const first = chain.time.firstBlock()
    if (slot < first)
      throw new RpcError(
        -32001,
        `Block ${slot} cleaned up, does not exist on node. First available block: ${first}`,
      )
    return slot
  }

  const range = (from: number, to: number): number[] => {
    if (to - from > blocksMax) throw new RpcError(-32602, `Slot range too large; max ${blocksMax}`)
    const first = Math.max(from, chain.time.firstBlock())
    return Array.from({ length: Math.max(0, to - first + 1) }, (_, index) => first + index)
  }

  return {
    getBlock: (params: Params) => {
      const slot = slotAt(params)
      const config = typeof params[1] === 'string' ? { encoding: params[1] } : configAt(params, 1)
      const encoding = encodingOf(config, transactionEncodings, 'json')
      const details = config.transactionDetails ?? 'full'
      const versionMax = config.maxSupportedTransactionVersion ?? undefined
      const version =
        versionMax === undefined ? undefined : countOf(versionMax, 'maxSupportedTransactionVersion', 255)
      const rows = chain.ledger.inSlot(slot)
      return {
        blockHeight: heightOf(slot),
        blockTime: Math.floor(chain.time.msOf(slot) / 1000),
        blockhash: chain.time.hashOf(slot),
        parentSlot: slot - 1,
        previousBlockhash: chain.time.hashOf(slot - 1),
        ...(config.rewards === false ? {} : { rewards: [] }),
        ...(details === 'signatures' ? { signatures: rows.map(({ signature }) => signature) } : {}),
        ...(details === 'full' || details === 'accounts'
          ? {
              transactions: rows.map((row) => {
                const { blockTime: _time, slot: _slot, ...shown } = transactionView(row, encoding, version)
                return shown
              }),
            }
          : {}),
      }
    },
    getBlocks: (params: Params) => {
      const from = countOf(params[0], 'start slot', Number.MAX_SAFE_INTEGER)
      const last = newest(params, typeof params[1] === 'object' ? 1 : 2)
      const to = typeof params[1] === 'number' ? Math.min(params[1], last) : last
      return range(from, to)
    },
    getBlocksWithLimit: (params: Params) => {
      const start = countOf(params[0], 'start slot', Number.MAX_SAFE_INTEGER)
      const from = Math.max(start, chain.time.firstBlock())
      const limit = countOf(params[1], 'limit', blocksMax)
      return range(from, Math.min(newest(params, 2), from + limit - 1))
    },
    getBlockTime: (params: Params) => Math.floor(chain.time.msOf(slotAt(params)) / 1000),
    getBlockCommitment: () => ({ commitment: null, totalStake: 0 }),
    getFirstAvailableBlock: () => chain.time.firstBlock(),
    minimumLedgerSlot: () => chain.time.firstBlock(),
    getTransactionCount: (params: Params) => {
      commitmentOf(configAt(params, 0))
      return chain.ledger.count()
    },
    getSupply: (params: Params) => {
      const config = configAt(params, 0)
      const total = 600_000_000_000_000_000n
      return withContext(chain.slotAt(commitmentOf(config)), {
        circulating: total,
        nonCirculating: 0,
        nonCirculatingAccounts: [],
        total,
      })
    },
    getEpochSchedule: () => ({
      firstNormalEpoch: 0,
      firstNormalSlot: 0,
      leaderScheduleSlotOffset: slotsPerEpoch,
      slotsPerEpoch,
      warmup: false,
    }),
    getRecentPerformanceSamples: (params: Params) => {
      const limit = params[0] === undefined ? samplesMax : countOf(params[0], 'limit', samplesMax)
      const last = chain.slotAt('processed')
      const count = Math.min(limit, Math.floor((last - chain.time.firstBlock()) / sampleSlots))
      return Array.from({ length: count }, (_, index) => ({
        numNonVoteTransactions: 0,
        numSlots: sampleSlots,
        numTransactions: 0,
        samplePeriodSecs: (sampleSlots * slotMs) / 1000,
        slot: last - index * sampleSlots,
      }))
    },
    getSlotLeader: () => validator,
    getSlotLeaders: (params: Params) => Array(countOf(params[1], 'limit', leadersMax)).fill(validator),
    getLeaderSchedule: () => null,
    getIdentity: () => ({ identity: validator }),
    getClusterNodes: () => [],
    getVoteAccounts: () => ({ current: [], delinquent: [] }),
    getInflationGovernor: () => ({ foundation: 0, foundationTerm: 0, initial: 0, taper: 0, terminal: 0 }),
    getInflationRate: () => ({ epoch: 0, foundation: 0, total: 0, validator: 0 }),
    getHighestSnapshotSlot: () => {
      throw new RpcError(-32008, 'No snapshot')
    },
    getStakeMinimumDelegation: () => withContext(chain.slotAt('finalized'), 1_000_000_000),
    getMaxRetransmitSlot: () => chain.slotAt('processed'),
    getMaxShredInsertSlot: () => chain.slotAt('processed'),
  }
}
