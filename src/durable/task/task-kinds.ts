import type { TaskKind, TaskPriority } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

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
const conversationPriority: TaskPriority = 3
/** The priority of runs of schedules and of their chats, for which nobody waits. */
const unattendedPriority: TaskPriority = 4
export const isUnattended = (priority: number): boolean => priority === unattendedPriority
export const isConversation = (priority: number): boolean =>
  priority === conversationPriority || isUnattended(priority)
export const movesMoney = ({ priority }: Pick<TaskKind, 'priority'>): boolean => !isConversation(priority)

/**
 * Returns the priority of one task: its kind may derive it from the input, and a conversation that another task has
 * started is unattended.
 */
export const taskPriority = (
  { priority, priorityOf }: Pick<TaskKind, 'priority' | 'priorityOf'>,
  { parent_id: parentId, input }: { parent_id: string | null; input: JsonObject },
): TaskPriority =>
  priorityOf?.(input) ??
  (priority === conversationPriority && parentId !== null ? unattendedPriority : priority)
