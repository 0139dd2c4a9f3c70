"""Puts a group's standbys back where no pass can do it: the StreamApp is gone, or the operator is being uninstalled.

Called by `reconcile.apply` and by `controller.uninstall`. In a pass, `core.actions.standbys` decides it.
"""

from streamapp.controller.ports import ApplicationGroup, KafkaStepError
from streamapp.core.actions import standbys
from streamapp.core.facts.group import GroupDescription, StandbySetting
from streamapp.core.facts.hold_record import RaisedStandbys


async def put_back(group: ApplicationGroup, raised: RaisedStandbys) -> str:
    """Write the old value if the brokers show one of the operator; give why that cannot be done, empty if it is done.

    The value of another hand stays.
    """
    described = (await group.describe()).group
    if not isinstance(described, GroupDescription):
        return described.detail
    # The setting outlasts a change of the protocol, and would count again after the next one.
    setting = await group.standbys() if described.streams is None else described.streams.standbys
    if not isinstance(setting, StandbySetting):
        return setting.detail
    if standbys.is_elsewhere(raised, setting):
        return f"they were raised on Kafka cluster {raised.cluster}, and these brokers are of {setting.cluster}"
    if not standbys.is_ours(raised, setting):
        return ""
    try:
        await group.set_standbys(raised.before, setting)
    except KafkaStepError as error:
        return str(error)
    return ""
