import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { WorldClock } from '#world/clock.ts'
import { type Anvil, startAnvil } from './anvil.ts'
import type { WorldChain } from './chains.ts'
import type { Rpc } from './rpc.ts'
import { savedState } from './saved-state.ts'

export type EvmNode = {
  chain: WorldChain
  start: () => Promise<void>
  /** `SIGKILL` loses what came after the last save, as a crash does. The node stays down until `start`. */
  stop: (signal: 'SIGTERM' | 'SIGKILL') => Promise<void>
  /** Moves a chain that is up to the world's time by one block; one that is down learns it when it starts. */
  syncTime: () => Promise<void>
  /** Makes the world's time visible before a read: see `idleMs`. */
  touch: () => Promise<void> | undefined
  save: () => Promise<void>
  rpc: () => Rpc
  port: () => number | undefined
}

type Options = {
  chain: WorldChain
  dir: string
  clock: WorldClock
  automine: boolean
  seed: (rpc: Rpc, chain: WorldChain) => Promise<void>
  log: (line: string) => void
}

/**
 * Automine makes a block per transaction and none between, and `eth_call` sees the time of the last block: a
 * vault that grows with time would stand still. So a read that finds the head older than this gets a new block
 * first. Blocks are made for readers only: a world that nobody looks at costs nothing and its files do not grow.
 */
const idleMs = 2_000
/** When only pollers look, and nobody trades, time may move in larger steps. */
const quietIdleMs = 10_000
const quietAfterMs = 60_000
const saveEveryMs = 1_000

export const evmNode = ({ chain, dir, clock, automine, seed, log }: Options): EvmNode => {
  const files = savedState(dir, chain.id)
  let anvil: Anvil | undefined
  let wanted = false
  let starting: Promise<void> | undefined
  let savedHead = ''
  let ticking: Promise<void> | undefined
  let lookedAt = 0
  let tradedAt = Date.now()
  let ownHead = -1
  let seen = false
  let saving: Promise<void> | undefined
  let restarts = 0

  const rpc = (): Rpc => {
    if (!anvil) throw new Error(`${chain.name} is stopped.`)
    return anvil.rpc
  }

  const head = async () => {
    const block = (await rpc().call('eth_getBlockByNumber', ['latest', false])) as {
      number: string
      timestamp: string
      hash: string
    }
    return { number: Number(block.number), atSeconds: Number(block.timestamp), hash: block.hash }
  }

  const save = async () => {
    const { hash } = await head()
    if (hash === savedHead) return
    await files.write((await rpc().call('anvil_dumpState')) as string)
    savedHead = hash
  }

  const mineAtWorldTime = async () => {
    const { number, atSeconds } = await head()
    const nowSeconds = Math.max(Math.floor(clock.nowMs() / 1000), atSeconds)
    // Anvil keeps no clock over a restart and would fall back to the machine's, even into the chain's past.
    await rpc().batch([{ method: 'evm_setTime', params: [nowSeconds] }, { method: 'evm_mine' }])
    ownHead = number + 1
  }

  const tick = async () => {
    const { number, atSeconds } = await head()
    if (number !== ownHead) tradedAt = Date.now()
    ownHead = number
    const limitMs = Date.now() - tradedAt > quietAfterMs ? quietIdleMs : idleMs
    if (clock.nowMs() - atSeconds * 1000 >= limitMs) await mineAtWorldTime()
  }

  const touch = () => {
    seen = true
    if (!anvil || !automine) return undefined
    if (ticking) return ticking
    if (Date.now() - lookedAt < idleMs) return undefined
    lookedAt = Date.now()
    ticking = tick()
      .catch(() => {})
      .finally(() => {
        ticking = undefined
      })
    return ticking
  }

  const saveLoop = async (current: Anvil) => {
    let pauseMs = saveEveryMs
    while (anvil === current) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs).unref())
      if (anvil !== current || !(seen || !automine)) continue
      seen = false
      const began = performance.now()
      saving = save().catch((error: Error) => {
        if (anvil === current) log(`${chain.name}: saving failed: ${error.message}`)
      })
      await saving
      // A long history takes long to write; it must not take all the time there is.
      pauseMs = Math.max(saveEveryMs, 10 * (performance.now() - began))
    }
  }

  const launch = async () => {
    const load = await files.newest()
    if (load !== undefined) await files.compact()
    const options = { chainId: chain.id, pidFile: join(dir, `${chain.id}.pid`), exitFile: files.exit }
    const started = await startAnvil({
      ...options,
      ...(load === undefined ? {} : { load }),
      ...(automine ? {} : { blockSeconds: 2 }),
    })
    anvil = started
    savedHead = ''
    if (load === undefined) await seed(started.rpc, chain)
    await mineAtWorldTime()
    if (load === undefined) await save()
    void saveLoop(started)
    void started.child.exited.then(() => onExit(started))
  }

  const onExit = (gone: Anvil) => {
    gone.rpc.close()
    if (anvil === gone) anvil = undefined
    if (!wanted) return
    restarts += 1
    log(`${chain.name} ended by itself; starting it again from its last save.`)
    // Growing pauses: a node that cannot start must not fill the log and the machine.
    setTimeout(
      () => wanted && start().catch((error: Error) => log(error.message)),
      Math.min(50 * restarts, 5_000),
    )
  }

  const start = () => {
    wanted = true
    if (anvil) return Promise.resolve()
    starting ??= launch().finally(() => {
      starting = undefined
    })
    return starting
  }

  const stop = async (signal: 'SIGTERM' | 'SIGKILL') => {
    wanted = false
    await starting?.catch(() => {})
    const current = anvil
    anvil = undefined
    await saving
    await current?.child.stop(signal)
    if (signal === 'SIGKILL') await rm(files.exit, { force: true })
  }

  return {
    chain,
    start,
    stop,
    touch,
    save,
    rpc,
    port: () => anvil?.port,
    syncTime: async () => {
      if (!anvil) return
      tradedAt = Date.now()
      await mineAtWorldTime()
    },
  }
}
