type ArrivalBatchOptions<Item, Result> = {
  /** One result per item, in their order. */
  run(items: readonly Item[]): Promise<readonly Result[]>
  sizeMax: number
  /** Items of one key go into different batches, in their order. Undefined: any batch. */
  keyOf?: (item: Item) => string | undefined
  /** A failure after which an item must not run again by itself. */
  isFinal: (error: unknown) => boolean
}
type Waiting<Item, Result> = { item: Item; key: string | undefined; answer: PromiseWithResolvers<Result> }

/**
 * Batches by arrival: while one batch runs the next items collect, without a timer, so that one alone waits for nothing.
 * Where a batch fails, its items run singly, so that one item fails no other.
 */
export function batchByArrival<Item, Result>(
  options: ArrivalBatchOptions<Item, Result>,
): (item: Item) => Promise<Result> {
  const { keyOf } = options
  let waiting: Waiting<Item, Result>[] = []
  let isRunning = false

  const runNext = async (): Promise<void> => {
    isRunning = true
    while (waiting.length > 0) {
      const { batch, rest } = nextBatch(waiting, options.sizeMax)
      waiting = rest
      await runBatch(options, batch)
    }
    isRunning = false
  }

  return (item) => {
    const answer = Promise.withResolvers<Result>()
    waiting.push({ item, key: keyOf?.(item), answer })
    if (!isRunning) void runNext()
    return answer.promise
  }
}

function nextBatch<Item, Result>(waiting: readonly Waiting<Item, Result>[], sizeMax: number) {
  const keys = new Set<string>()
  const batch: Waiting<Item, Result>[] = []
  const rest: Waiting<Item, Result>[] = []
  for (const each of waiting) {
    if (batch.length === sizeMax || (each.key !== undefined && keys.has(each.key))) rest.push(each)
    else batch.push(each)
    if (each.key !== undefined) keys.add(each.key)
  }
  return { batch, rest }
}

async function runBatch<Item, Result>(
  { run, isFinal }: ArrivalBatchOptions<Item, Result>,
  batch: readonly Waiting<Item, Result>[],
): Promise<void> {
  try {
    const results = await run(batch.map(({ item }) => item))
    for (const [at, { answer }] of batch.entries()) answer.resolve(results[at] as Result)
  } catch (error) {
    if (batch.length === 1 || isFinal(error)) for (const { answer } of batch) answer.reject(error)
    else for (const each of batch) await runBatch({ run, isFinal, sizeMax: 1 }, [each])
  }
}
