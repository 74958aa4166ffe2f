import type { TaskKind, TaskPriority } from '#kernel/task/task.ts'

export const kindKey = (kind: string, version: number): string => `${kind}@${version}`

/** New tasks get the newest version of their kind; older versions only finish existing tasks. */
export function newestKind(kinds: ReadonlyMap<string, TaskKind>, name: string): TaskKind | undefined {
  return [...kinds.values()]
    .filter(({ kind }) => kind === name)
    .reduce<TaskKind | undefined>(
      (newest, each) => (newest === undefined || each.version > newest.version ? each : newest),
      undefined,
    )
}

/** The priority of chats and images. A chat moves money only through separate tasks. */
export const conversationPriority: TaskPriority = 3
export const movesMoney = ({ priority }: Pick<TaskKind, 'priority'>): boolean =>
  priority !== conversationPriority
