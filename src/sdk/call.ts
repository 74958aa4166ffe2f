import type { ListRow } from './operations.ts'
import type { Input, Reply } from './transport.ts'

export type WithResponse<Output> = {
  data: Output
  response: Response
  request_id: string | null
  /** The key under which the call may be repeated. */
  idempotency_key: string | null
  /** Whether the answer is that of an earlier call under this key. */
  replayed: boolean
}
/** A call under way: await its answer, or ask by `withResponse` for the answer together with the HTTP response. */
export type Call<Output> = Promise<Output> & { withResponse(): Promise<WithResponse<Output>> }
/** Await the call for the first page of a list, or iterate over it for every item of every page. */
export type ListCall<Output, Item> = Call<Output> & AsyncIterable<Item>

/** The most pages of one iteration: a list that grows faster than it is read would never end. */
const pagesMax = 10_000

export function callOf(reply: Promise<Reply>): Call<unknown> {
  const data = reply.then((read) => read.data)
  return Object.assign(data, {
    withResponse() {
      // `reply` reports the failure, so the rejection of `data` is ignored.
      data.catch(() => {})
      return reply.then(({ response, data }) => ({
        data,
        response,
        request_id: response.headers.get('x-request-id'),
        idempotency_key: response.headers.get('idempotency-key'),
        replayed: response.headers.get('idempotent-replayed') === 'true',
      }))
    },
  })
}

type Page = Readonly<Record<string, unknown>>

export function listCallOf(
  first: Promise<Reply>,
  { list, input, readPage }: { list: ListRow; input: Input; readPage: (input: Input) => Promise<Reply> },
): ListCall<unknown, unknown> {
  const call = callOf(first)
  return Object.assign(call, {
    async *[Symbol.asyncIterator]() {
      let asked = input
      let page = await call
      for (let pages = 1; pages <= pagesMax; pages++) {
        const items = itemsOf(list, page)
        yield* items
        const next = nextInput(list, asked, page, items)
        if (!next) return
        asked = next
        page = (await readPage(next)).data
      }
    },
  })
}

function itemsOf(list: ListRow, page: unknown): readonly unknown[] {
  const found = 'id' in list ? page : (page as Page)[list.items]
  return Array.isArray(found) ? found : []
}

function nextInput(list: ListRow, asked: Input, page: unknown, items: readonly unknown[]): Input | undefined {
  const { cursor } = list
  if (cursor === 'skip') {
    const skip = Number(asked.skip ?? 0) + items.length
    // An answer that is a bare array has no total, so the list ends with an empty page.
    const hasMore = items.length > 0 && (Array.isArray(page) || skip < Number((page as Page).total))
    return hasMore ? { ...asked, skip } : undefined
  }
  const last = 'id' in list ? (items.at(-1) as Page | undefined)?.[list.id] : undefined
  const next = 'id' in list ? last : (page as Page)[`next_${cursor}`]
  if (next === null || next === undefined || next === asked[cursor]) return undefined
  // `skip` counts from the cursor of the first page, and the next page has its own cursor.
  const { skip: _, ...rest } = asked
  return { ...rest, [cursor]: next }
}
