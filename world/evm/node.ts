import { rm } from 'node:fs/promises'
import type { WorldClock } from '#world/clock.ts'
import type { Endpoint } from '#world/proxy.ts'
import { createRestartable, type Signal } from '#world/restartable.ts'
import { type Anvil, retainedBlocks } from './anvil.ts'
import { type Autosave, createAutosave } from './autosave.ts'
import { callJournal } from './call-journal.ts'
import { chainTime } from './chain-time.ts'
import { type Address, faucetContract, vault, vaultChain, type WorldChain } from './chains.ts'
import { withGasLimits } from './changing-calls.ts'
import { type EventLog, eventArchive } from './event-archive.ts'
import { blockSeconds, type ChainOptions, createLauncher } from './node-launch.ts'
import { type Recorder, recorder } from './recorder.ts'
import { reorganise } from './reorg.ts'
import { type Rpc, rpcOver } from './rpc.ts'
import { savedState } from './saved-state.ts'
import { dumpConsistentState } from './state-dump.ts'
import { createStateLock } from './state-lock.ts'

export type EvmNode = {
  chain: WorldChain
  start: () => Promise<void>
  /** `SIGKILL` is a crash: the next start repeats the calls after the last save. The node stays down until `start`. */
  stop: (signal: Signal) => Promise<void>
  /** Moves a running chain to the world's time by one block; a stopped one reads the time at its next start. */
  syncTime: () => Promise<void>
  /** Makes the world's time visible before a read. */
  mineIfStale: () => Promise<void> | undefined
  /** Removes blocks and mines their transactions again later, one call after the other; returns how many there were. */
  reorganise: (depth: number, vanishedMs: number) => Promise<number>
  rpc: () => Rpc
  /** Records the changes of clients, so that a crash does not lose them. */
  recorder: Recorder
  /** Events of a world contract since its first block, including those that the node has dropped. */
  events: (address: Address, topics: readonly (Hex | readonly Hex[] | null)[]) => Promise<EventLog[]>
  /** Undefined while the chain is stopped. */
  endpoint: () => Endpoint | undefined
}

type Options = ChainOptions & { clock: WorldClock }

type Hex = `0x${string}`

/** The stop of a gateway waits some seconds for the whole world. */
const lastSaveMsMax = 3_000
/** A journal of this size is saved at once. */
const journalBytesMax = 8_000_000

const saveLast = async (autosave: Autosave, anvil: Anvil): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined
  const timedOut = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), lastSaveMsMax)
  })
  const saved = autosave.save(anvil, { always: true }).then(
    () => true,
    () => false,
  )
  return Promise.race([saved, timedOut]).finally(() => clearTimeout(timer))
}

export const evmNode = (options: Options): EvmNode => {
  const { chain, dir, clock, automine, log } = options
  const files = savedState(dir, chain.id, retainedBlocks)
  const contracts = chain.id === vaultChain ? [faucetContract, vault] : [faucetContract]
  const archive = eventArchive(dir, chain.id, contracts)
  const time = chainTime(clock)
  const journal = callJournal(dir, chain.id)
  const stateLock = createStateLock()
  const onFailure = (error: Error) => log(`${chain.name}: saving failed: ${error.message}`)
  const autosave = createAutosave({
    write: (anvil) =>
      stateLock.runExclusive(anvil.rpc, async () => {
        const dropSaved = await callRecorder.rotate(anvil.rpc)
        await files.write((path) => dumpConsistentState(anvil, path)).then(dropSaved)
      }),
    isUrgent: () => journal.bytes() > journalBytesMax,
    onSaved: archive.extend,
    onFailure,
  })
  let reorganisation: Promise<number> | undefined
  let launching: Anvil | undefined
  const callRecorder = recorder({
    journal,
    stateLock,
    rpc: () => (restartable.current() ?? launching)?.rpc,
    nowMs: clock.nowMs,
    save: async () => {
      const anvil = restartable.current()
      if (anvil) await autosave.save(anvil, { always: true })
    },
    isAutomining: () => automine && !reorganisation,
  })
  const recordedRpc = ({ rpc }: Anvil): Rpc =>
    rpcOver(async (body) => {
      if (callRecorder.isChange(body)) return callRecorder.record(body, rpc.post)
      const replyText = await rpc.post(body)
      await callRecorder.recordShown()
      return replyText
    }, rpc.close)

  const launch = createLauncher({
    ...options,
    files,
    archive,
    journal,
    autosave,
    recordedRpc,
    onLaunching: (anvil) => {
      launching = anvil
    },
  })

  const restartable = createRestartable({ name: chain.name, launch, log })
  return {
    chain,
    start: restartable.start,
    stop: async (signal) => {
      // Waits for a save in progress, or its older content would count as the newer file.
      if (signal === 'SIGTERM') await autosave.whenIdle()
      const anvil = restartable.current()
      const isSaved = signal === 'SIGTERM' && anvil !== undefined && (await saveLast(autosave, anvil))
      // Anvil would write the same again, uncompressed.
      await restartable.stop(isSaved ? 'SIGKILL' : signal)
      if (isSaved) await rm(files.exit, { force: true })
      await autosave.whenIdle()
      if (signal === 'SIGKILL') await rm(files.exit, { force: true })
    },
    syncTime: async () => {
      const anvil = restartable.current()
      autosave.markDirty()
      if (anvil) await stateLock.runShared(() => time.sync(anvil.rpc))
    },
    mineIfStale: () => {
      const anvil = restartable.current()
      autosave.markDirty()
      return anvil && automine && !reorganisation && !stateLock.isLocked()
        ? time.mineIfStale(anvil.rpc)
        : undefined
    },
    reorganise: async (depth, vanishedMs) => {
      while (reorganisation) await reorganisation.catch(() => {})
      const anvil = restartable.current()
      if (!anvil) return 0
      autosave.markDirty()
      reorganisation = reorganise({
        rpc: anvil.rpc,
        automine,
        blockSeconds,
        depth,
        vanishedMs,
        nowMs: clock.nowMs,
        recordResend: callRecorder.recordResend,
        save: () => autosave.save(anvil, { always: true }).catch(onFailure),
        runShared: stateLock.runShared,
      }).finally(() => {
        reorganisation = undefined
      })
      return reorganisation
    },
    rpc: () => {
      const anvil = restartable.current()
      if (!anvil) throw new Error(`${chain.name} is stopped.`)
      autosave.markDirty()
      return recordedRpc(anvil)
    },
    recorder: {
      ...callRecorder,
      record: (body, ask) => {
        autosave.markDirty()
        return callRecorder.record(withGasLimits(body), ask)
      },
    },
    events: (address, topics) => {
      const anvil = restartable.current()
      if (!anvil) throw new Error(`${chain.name} is stopped.`)
      return archive.find(recordedRpc(anvil), address, topics)
    },
    endpoint: restartable.current,
  }
}
