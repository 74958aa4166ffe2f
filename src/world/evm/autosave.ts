import type { Anvil } from './anvil.ts'
import { headOf } from './chain-time.ts'
import type { Rpc } from './rpc.ts'

const everyMs = 1_000
const pauseMsMax = 15_000

export type Autosave = {
  /** Answers the number of the newest block that is saved. */
  save: (anvil: Anvil, always?: boolean) => Promise<number>
  /** Something may have changed: the next round looks. */
  markDirty: () => void
  run: (anvil: Anvil) => Promise<void>
  whenIdle: () => Promise<unknown>
}

type Options = {
  write: (anvil: Anvil) => Promise<void>
  /** Whether the next save should not wait any longer. */
  isUrgent: () => boolean
  onSaved: (rpc: Rpc, head: number) => Promise<void>
  onFailure: (error: Error) => void
}

/** Anvil's own periodic dump writes without need and can be torn by a kill; this one does neither. */
export const createAutosave = ({ write, isUrgent, onSaved, onFailure }: Options): Autosave => {
  let savedHead = { hash: '', number: 0 }
  let isDirty = false
  let saving: Promise<unknown> = Promise.resolve()

  const save: Autosave['save'] = async (anvil, always = false) => {
    const { hash, number } = await headOf(anvil.rpc)
    if (hash === savedHead.hash && !always) return savedHead.number
    await write(anvil)
    savedHead = { hash, number }
    return number
  }

  const run = async (anvil: Anvil) => {
    const { child, rpc } = anvil
    let pauseMs = everyMs
    while (!child.hasExited()) {
      for (let waitedMs = 0; waitedMs < pauseMs; waitedMs += everyMs) {
        await new Promise((resolve) => setTimeout(resolve, everyMs).unref())
        if (isUrgent()) break
      }
      if (!isDirty || child.hasExited()) continue
      isDirty = false
      const startedMs = performance.now()
      saving = save(anvil, isUrgent())
        .then((head) => onSaved(rpc, head))
        .catch((error: Error) => {
          if (!child.hasExited()) onFailure(error)
        })
      await saving
      // A long history takes long to write; it must not take all the time there is.
      pauseMs = Math.min(pauseMsMax, Math.max(everyMs, 5 * (performance.now() - startedMs)))
    }
  }

  return {
    save,
    run,
    markDirty: () => {
      isDirty = true
    },
    whenIdle: () => saving,
  }
}
