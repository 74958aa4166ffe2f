import { join } from 'node:path'
import type { WorldClock } from '#world/clock.ts'
import { type Anvil, startAnvil } from './anvil.ts'
import type { Autosave } from './autosave.ts'
import type { CallJournal } from './call-journal.ts'
import { mineAtWorldTime } from './chain-time.ts'
import { predictionChain, sponsors, type WorldChain, worldChains } from './chains.ts'
import type { EventArchive } from './event-archive.ts'
import { miningModeCall } from './reorg.ts'
import { readMarker, replay } from './replay.ts'
import type { Rpc } from './rpc.ts'
import type { SavedState } from './saved-state.ts'

/** How a node starts: with a new chain, or with the saved one and the calls that it lacks. */

export type ChainOptions = {
  chain: WorldChain
  dir: string
  automine: boolean
  seed: (rpc: Rpc, chain: WorldChain) => Promise<void>
  log: (line: string) => void
}
type Options = ChainOptions & {
  clock: WorldClock
  files: SavedState
  archive: EventArchive
  journal: CallJournal
  autosave: Autosave
  recordedRpc: (anvil: Anvil) => Rpc
  /** Called with the node while it is being prepared, and with undefined afterwards. */
  onLaunching: (anvil: Anvil | undefined) => void
}

export const blockSeconds = 2

/** In the past, and different for each chain at any start time, so that the genesis blocks differ. */
const genesisSecondsOf = (chain: WorldChain) =>
  (Math.floor(Date.now() / 8_000) - 1) * 8 - worldChains.findIndex(({ id }) => id === chain.id)

const sponsorWei = 10_000n * 10n ** 18n

/** At each start: refills balances that were spent, and creates what worlds of an earlier version lack. */
const fundSponsors = async (rpc: Rpc) => {
  const balances = await rpc.batch(
    sponsors.map((address) => ({ method: 'eth_getBalance', params: [address, 'latest'] })),
  )
  await rpc.batch(
    sponsors
      .filter((_, index) => BigInt(balances[index] as string) < sponsorWei / 2n)
      .map((address) => ({ method: 'anvil_setBalance', params: [address, `0x${sponsorWei.toString(16)}`] })),
  )
}

/** Worlds of an earlier version lack what is placed since. */
const completeChain = async (rpc: Rpc, { id }: WorldChain) => {
  if (id !== predictionChain) return
  const { placeContracts } = await import('#world/polymarket/chain/place.ts')
  await placeContracts(rpc)
}

export const createLauncher = (options: Options): (() => Promise<Anvil>) => {
  const { chain, dir, clock, automine, seed, log, files, archive, journal, autosave } = options
  const { recordedRpc, onLaunching } = options

  /** Repeats the calls that the saved state lacks, in blocks of the same numbers and times; false without any. */
  const restore = async ({ rpc }: Anvil): Promise<boolean> => {
    const { file, set } = await readMarker(rpc)
    const entries = journal.open(file, Math.max(file, set))
    if (entries.length === 0) return false
    const failed = (error: Error) => log(`${chain.name}: a call was not repeated: ${error.message}`)
    await rpc.batch([miningModeCall({ automine }, blockSeconds, { isMining: false })])
    const missing = await replay(rpc, entries, failed)
    await rpc.batch([miningModeCall({ automine }, blockSeconds, { isMining: true })])
    if (missing > 0) log(`${chain.name}: sent ${missing} transactions again that came after the last save.`)
    return true
  }

  const prepare = async (anvil: Anvil, { fresh }: { fresh: boolean }) => {
    if (fresh) {
      await seed(anvil.rpc, chain)
      journal.clear()
    }
    const isRestored = await restore(anvil)
    if (!fresh) await completeChain(recordedRpc(anvil), chain)
    await fundSponsors(recordedRpc(anvil))
    await mineAtWorldTime(anvil.rpc, clock)
    // The first save marks a finished seed, so it comes last. A restored chain may have got blocks that were not recorded.
    if (fresh || isRestored) await autosave.save(anvil)
  }

  return async () => {
    const load = await files.prepare()
    if (load === undefined) await archive.clear()
    const anvil = await startAnvil({
      chainId: chain.id,
      pidFile: join(dir, `${chain.id}.pid`),
      exitFile: files.exit,
      ...(load === undefined ? { genesisSeconds: genesisSecondsOf(chain) } : { load }),
      ...(automine ? {} : { blockSeconds }),
    })
    try {
      await files.removeLoaded()
      onLaunching(anvil)
      await prepare(anvil, { fresh: load === undefined })
    } catch (error) {
      await anvil.child.stop('SIGKILL')
      throw error
    } finally {
      onLaunching(undefined)
    }
    void anvil.child.exited.then(anvil.rpc.close)
    void autosave.run(anvil)
    return anvil
  }
}
