import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { WorldClock } from '#world/clock.ts'
import { lifecycle, type Signal } from '#world/lifecycle.ts'
import { type Anvil, startAnvil } from './anvil.ts'
import { chainTime, mineAtWorldTime } from './chain-time.ts'
import type { WorldChain } from './chains.ts'
import type { Rpc } from './rpc.ts'
import { savedState } from './saved-state.ts'
import { saver } from './saver.ts'

export type EvmNode = {
  chain: WorldChain
  start: () => Promise<void>
  /** `SIGKILL` loses what came after the last save, as a crash does. The node stays down until `start`. */
  stop: (signal: Signal) => Promise<void>
  /** Moves a chain that is up to the world's time by one block; one that is down learns it when it starts. */
  syncTime: () => Promise<void>
  /** Makes the world's time visible before a read. */
  touch: () => Promise<void> | undefined
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

const blockSeconds = 2

export const evmNode = ({ chain, dir, clock, automine, seed, log }: Options): EvmNode => {
  const files = savedState(dir, chain.id)
  const time = chainTime(clock)
  const onFailure = (error: Error) => log(`${chain.name}: saving failed: ${error.message}`)
  const saves = saver({ write: files.write, onFailure })

  const prepare = async (anvil: Anvil, fresh: boolean) => {
    if (fresh) await seed(anvil.rpc, chain)
    await mineAtWorldTime(anvil.rpc, clock)
    // The first save is the mark of a finished seed, so it comes last.
    if (fresh) await saves.save(anvil.rpc)
  }

  const launch = async (): Promise<Anvil> => {
    const load = await files.newest()
    if (load !== undefined) await files.compact()
    const anvil = await startAnvil({
      chainId: chain.id,
      pidFile: join(dir, `${chain.id}.pid`),
      exitFile: files.exit,
      ...(load === undefined ? {} : { load }),
      ...(automine ? {} : { blockSeconds }),
    })
    try {
      await prepare(anvil, load === undefined)
    } catch (error) {
      await anvil.child.stop('SIGKILL')
      throw error
    }
    void anvil.child.exited.then(anvil.rpc.close)
    void saves.keepSaving(anvil)
    return anvil
  }

  const life = lifecycle({ name: chain.name, launch, log })
  return {
    chain,
    start: life.start,
    stop: async (signal) => {
      // A save that is under way comes first, or its older content would count as the newer file.
      if (signal === 'SIGTERM') await saves.settled()
      await life.stop(signal)
      await saves.settled()
      if (signal === 'SIGKILL') await rm(files.exit, { force: true })
    },
    syncTime: async () => {
      const anvil = life.now()
      saves.mark()
      if (anvil) await time.sync(anvil.rpc)
    },
    touch: () => {
      const anvil = life.now()
      saves.mark()
      return anvil && automine ? time.touch(anvil.rpc) : undefined
    },
    rpc: () => {
      const anvil = life.now()
      if (!anvil) throw new Error(`${chain.name} is stopped.`)
      saves.mark()
      return anvil.rpc
    },
    port: () => life.now()?.port,
  }
}
