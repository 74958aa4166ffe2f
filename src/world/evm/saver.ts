import type { Anvil } from './anvil.ts'
import { headOf } from './chain-time.ts'
import type { Rpc } from './rpc.ts'

const everyMs = 1_000

export type Saver = {
  save: (rpc: Rpc) => Promise<void>
  /** Something may have changed: the next round looks. */
  mark: () => void
  keepSaving: (anvil: Anvil) => Promise<void>
  settled: () => Promise<void>
}

type Options = { write: (dump: string) => Promise<void>; onFailure: (error: Error) => void }

/** Anvil's own periodic dump writes without need and can be torn by a kill; this one does neither. */
export const saver = ({ write, onFailure }: Options): Saver => {
  let savedHead = ''
  let marked = false
  let saving: Promise<void> = Promise.resolve()

  const save = async (rpc: Rpc) => {
    const { hash } = await headOf(rpc)
    if (hash === savedHead) return
    await write((await rpc.call('anvil_dumpState')) as string)
    savedHead = hash
  }

  const keepSaving = async ({ child, rpc }: Anvil) => {
    let pauseMs = everyMs
    while (!child.hasExited()) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs).unref())
      if (!marked || child.hasExited()) continue
      marked = false
      const began = performance.now()
      saving = save(rpc).catch((error: Error) => {
        if (!child.hasExited()) onFailure(error)
      })
      await saving
      // A long history takes long to write; it must not take all the time there is.
      pauseMs = Math.max(everyMs, 10 * (performance.now() - began))
    }
  }

  return {
    save,
    keepSaving,
    mark: () => {
      marked = true
    },
    settled: () => saving,
  }
}
