/** What this process retains in its heap after something ran. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapBytes(): number {
  // Finalizers of the first collection free what the second one takes.
  for (let round = 0; round < 3; round++) collect()
  return process.memoryUsage().heapUsed
}

/** The least of several rounds: caches fill and code is compiled in the first ones. */
export async function retainedBytes(run: () => Promise<void>, rounds: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const before = heapBytes()
    await run()
    least = Math.min(least, heapBytes() - before)
  }
  return least
}
