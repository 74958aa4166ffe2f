import type { Anvil } from './anvil.ts'
import { headOf } from './chain-time.ts'
import { dumpTo } from './dump.ts'
import type { Rpc } from './rpc.ts'

const everyMs = 1_000
/** What a crash may lose at most, beside the save that is under way. */
const pauseMsMax = 15_000

export type Saver = {
  /** Answers the number of the newest block that is saved. */
  save: (anvil: Pick<Anvil, 'rpc' | 'host' | 'port'>, always?: boolean) => Promise<number>
  /** Something may have changed: the next round looks. */
  mark: () => void
  keepSaving: (anvil: Anvil) => Promise<void>
  settled: () => Promise<unknown>
}

type Options = {
  write: (dump: (path: string) => Promise<void>) => Promise<void>
  saved: (rpc: Rpc, head: number) => Promise<void>
  onFailure: (error: Error) => void
}

/** Anvil's own periodic dump writes without need and can be torn by a kill; this one does neither. */
export const saver = ({ write, saved, onFailure }: Options): Saver => {
  let savedHead = { hash: '', number: 0 }
  let marked = false
  let saving: Promise<unknown> = Promise.resolve()

  const save: Saver['save'] = async ({ rpc, host, port }, always = false) => {
    const { hash, number } = await headOf(rpc)
    if (hash === savedHead.hash && !always) return savedHead.number
    await write((path) => dumpTo({ host, port }, path))
    savedHead = { hash, number }
    return number
  }

  const keepSaving = async (anvil: Anvil) => {
    const { child, rpc } = anvil
    let pauseMs = everyMs
    while (!child.hasExited()) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs).unref())
      if (!marked || child.hasExited()) continue
      marked = false
      const began = performance.now()
      saving = save(anvil)
        .then((head) => saved(rpc, head))
        .catch((error: Error) => {
          if (!child.hasExited()) onFailure(error)
        })
      await saving
      // A long history takes long to write; it must not take all the time there is.
      pauseMs = Math.min(pauseMsMax, Math.max(everyMs, 5 * (performance.now() - began)))
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
