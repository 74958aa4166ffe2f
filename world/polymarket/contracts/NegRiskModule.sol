// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {PositionModule} from "./shared/PositionModule.sol";

/// Conditions of one event, of which at most one resolves to YES.
contract NegRiskModule is PositionModule {
    mapping(bytes29 eventId => bool) public isDetermined;

    error BadConditionCount(uint256 conditions);
    error AlreadyDetermined(bytes29 eventId);

    function prepareEvent(bytes calldata data, uint256 conditions) external onlyOracle returns (bytes29 eventId) {
        require(conditions > 0 && conditions <= 255, BadConditionCount(conditions));
        bytes32 base = _baseOf(2, data, conditions);
        for (uint256 i = 0; i < conditions; i++) {
            _prepare(bytes31(bytes32(uint256(base) | i << 8)));
        }
        return bytes29(base);
    }

    /// No half each: the outcomes of an event exclude each other.
    function _checkReport(bytes31 conditionId, uint256 yes, uint256 no) internal override {
        require(yes + no == 1, InvalidPayouts(yes, no));
        bytes29 eventId = bytes29(conditionId);
        require(yes == 0 || !isDetermined[eventId], AlreadyDetermined(eventId));
        if (yes == 1) isDetermined[eventId] = true;
    }
}
