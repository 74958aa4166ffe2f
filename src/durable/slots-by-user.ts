/** The number of slots that each user holds. */
export type SlotsByUser = {
  count(userId: string): number
  add(userId: string): void
  remove(userId: string): void
  withAtLeast(slots: number): string[]
}

export function slotsByUser(): SlotsByUser {
  const taken = new Map<string, number>()
  const count = (userId: string): number => taken.get(userId) ?? 0
  return {
    count,
    add: (userId: string) => void taken.set(userId, count(userId) + 1),
    remove(userId: string) {
      if (count(userId) > 1) taken.set(userId, count(userId) - 1)
      else taken.delete(userId)
    },
    withAtLeast: (slots: number): string[] =>
      [...taken].filter(([, each]) => each >= slots).map(([userId]) => userId),
  }
}
