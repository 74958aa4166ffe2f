import type { Paged } from '#kernel/money/prediction-venue.ts'

type ReadPage<Row> = (cursor: string | undefined) => Promise<Paged<Row> | undefined>

/** Reads a list of the venue, up to so many pages; a page that is undefined ends it. */
export async function readPages<Row>(
  read: ReadPage<Row>,
  pagesMax: number,
): Promise<{ items: Row[]; isWhole: boolean }> {
  const items: Row[] = []
  let cursor: string | undefined
  for (let page = 0; page < pagesMax; page += 1) {
    const found = await read(cursor)
    items.push(...(found?.items ?? []))
    cursor = found?.nextCursor ?? undefined
    if (cursor === undefined) return { items, isWhole: found !== undefined }
  }
  return { items, isWhole: false }
}
